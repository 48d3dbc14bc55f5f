package files

import (
	"io"
	"strings"
	"sync"

	"github.com/agynio/k8s-runner/archive"
)

// stream is what the script reads: the folders, an empty line, the archive.
type stream struct {
	*io.PipeReader
	// close ends it and returns the size of the archive as far as it was read, and
	// whether that is all.
	close func() sent
}

type sent struct {
	bytes int64
	whole bool
}

func open(a *archive.Archive) *stream {
	read, write := io.Pipe()
	var writing sync.WaitGroup
	var result sent
	writing.Go(func() {
		_, err := io.WriteString(write, list(a.Folders()))
		if err == nil {
			result.bytes, err = a.WriteTo(write)
		}
		result.whole = err == nil
		_ = write.CloseWithError(err) // it returns no error
	})
	return &stream{PipeReader: read, close: sync.OnceValue(func() sent {
		_ = read.Close() // it returns no error
		writing.Wait()
		return result
	})}
}

// list writes names as the script reads them: a line "=NAME" for each, in which a
// line "+PART" goes before where a name has a line break.
func list(names []string) string {
	var out strings.Builder
	for _, name := range names {
		lines := strings.Split(name, "\n")
		for _, line := range lines[:len(lines)-1] {
			out.WriteString("+" + line + "\n")
		}
		out.WriteString("=" + lines[len(lines)-1] + "\n")
	}
	out.WriteString("\n")
	return out.String()
}
