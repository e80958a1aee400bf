package schema

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"
)

//go:embed migrations
var migrations embed.FS

// rendered is the migrations of d's database under d's table names, as a file system of one folder.
func (d *DB) rendered() (fs.FS, error) {
	folder := path.Join("migrations", d.dialect.name())
	entries, err := fs.ReadDir(migrations, folder)
	if err != nil {
		return nil, fmt.Errorf("schema: migrations: %w", err)
	}
	out := flatFS{}
	for _, entry := range entries {
		text, err := fs.ReadFile(migrations, path.Join(folder, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("schema: migrations: %w", err)
		}
		filled := token.ReplaceAllFunc(text, func(tok []byte) []byte {
			name, _, expandErr := d.expand(string(tok))
			if expandErr != nil {
				err = fmt.Errorf("schema: migration %s: %w", entry.Name(), expandErr)
			}
			return []byte(name)
		})
		if err != nil {
			return nil, err
		}
		out = append(out, flatFile{entry.Name(), filled})
	}
	return out, nil
}

// flatFS is a folder of files in memory, in order of name.
type flatFS []flatFile

type flatFile struct {
	name    string
	content []byte
}

// Open implements fs.FS.
func (f flatFS) Open(name string) (fs.File, error) {
	for _, file := range f {
		if file.name == name {
			return &openFile{Reader: bytes.NewReader(file.content), file: file}, nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// ReadDir implements fs.ReadDirFS.
func (f flatFS) ReadDir(string) ([]fs.DirEntry, error) {
	entries := make([]fs.DirEntry, len(f))
	for i, file := range f {
		entries[i] = fs.FileInfoToDirEntry(file)
	}
	return entries, nil
}

// flatFile is its own fs.FileInfo.
func (f flatFile) Name() string       { return f.name }
func (f flatFile) Size() int64        { return int64(len(f.content)) }
func (f flatFile) Mode() fs.FileMode  { return 0o444 }
func (f flatFile) ModTime() time.Time { return time.Time{} }
func (f flatFile) IsDir() bool        { return false }
func (f flatFile) Sys() any           { return nil }

type openFile struct {
	io.Reader
	file flatFile
}

func (o *openFile) Stat() (fs.FileInfo, error) { return o.file, nil }
func (o *openFile) Close() error               { return nil }
