package logfile

import (
	"bytes"
	"io"
)

// blockBytes is how much is read at a time from the end.
const blockBytes = 64 << 10

// skipToTail makes the chain begin with the last lines. skipToTail reads no more of the files than
// that, from their ends.
func (r *reader) skipToTail(lines int64) error {
	seen := map[string]bool{} // streams with an entry so far
	var count int64
	for i := len(r.chain) - 1; i >= 0; i-- {
		p := &r.chain[i]
		stopped, err := fromEnd(p.file, p.to, func(end int64, line []byte) bool {
			e, ok := parse(line)
			if !ok || (r.options.Stream != "" && string(e.stream) != r.options.Stream) {
				return false
			}
			// Its last entry begins a line, seen from the end; the last line may have no end yet.
			if e.full || !seen[string(e.stream)] {
				count++
			}
			seen[string(e.stream)] = true
			if count > lines {
				p.from = end
			}
			return count > lines
		})
		if err != nil {
			return err
		}
		if stopped {
			err := closeAll(r.chain[:i])
			r.chain = r.chain[i:]
			return err
		}
	}
	return nil
}

// fromEnd calls do for each line of the first size bytes of a file, from the last to the first,
// with the offset of its end, until do returns true.
func fromEnd(file io.ReaderAt, size int64, do func(end int64, line []byte) bool) (stopped bool, err error) {
	var rest []byte // the end of it is the end of a line that begins before
	for begin := size; begin > 0; {
		n := min(blockBytes, begin)
		begin -= n
		block := make([]byte, n, n+int64(len(rest)))
		if _, err := file.ReadAt(block, begin); err != nil {
			return false, err
		}
		block = append(block, rest...)
		for len(block) > 0 {
			cut := bytes.LastIndexByte(block[:len(block)-1], '\n')
			if cut < 0 && begin > 0 {
				break
			}
			if do(begin+int64(len(block)), block[cut+1:]) {
				return true, nil
			}
			block = block[:cut+1]
		}
		rest = block
	}
	return false, nil
}
