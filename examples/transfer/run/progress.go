package run

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress tells how many transfers have ended: as a bar on a terminal, else in some lines.
type progress struct {
	to    io.Writer
	total int
	bar   *progressbar.ProgressBar // nil: lines
	shown int
}

// lines is how many lines stand in for the bar.
const lines = 20

func newProgress(to io.Writer, total int) *progress {
	p := &progress{to: to, total: total}
	if f, ok := to.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(to), progressbar.OptionSetDescription("transfers"),
			progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish())
	}
	return p
}

func (p *progress) begin() {
	if p.bar == nil {
		fmt.Fprintf(p.to, "starting %s\n", count(p.total, "transfer"))
	}
}

// show is called by one goroutine at a time.
func (p *progress) show(ended int) {
	switch {
	case p.bar != nil:
		_ = p.bar.Set(ended) // a bar that cannot be drawn is no reason to stop
	case ended == p.shown:
	case ended-p.shown >= max(1, p.total/lines) || ended == p.total:
		p.shown = ended
		fmt.Fprintf(p.to, "%d of %s ended\n", ended, count(p.total, "transfer"))
	}
}

// close leaves the terminal to what comes next.
func (p *progress) close() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
