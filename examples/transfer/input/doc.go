// Package input reads and makes the program's input: one transfer a line, in JSON. A line is taken whole
// or refused with its reasons; nothing in it is guessed at.
package input
