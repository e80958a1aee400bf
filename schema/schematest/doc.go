// Package schematest runs one test body on every database that norn supports.
package schematest
