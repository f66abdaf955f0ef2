package logs

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// prefilter finds the lines that a rule may match: lines with one of a few literal texts of the rules' expressions. It
// searches for all texts in one pass, which skips most of the bytes: a table has, for each block of two bytes, the
// distance to the next place at which a text may end (Wu and Manber, 1994).
type prefilter struct {
	texts [][]byte
	// complete: each match of each rule has one of the texts. Otherwise every line counts.
	complete bool
	// width is the length of the shortest text. Of each text, only the first width bytes are in the table.
	width int
	// leap is how far the next place is at which a text may end, by the block at this one; 0: here.
	leap []uint8
	// ending are the texts whose first width bytes end with a block.
	ending map[uint16][][]byte
}

// shortestText is how short a text may be that is searched for: a shorter one spares little.
const shortestText = 4

// newPrefilter makes a filter of lines of some origins. More are texts of lines that count, too.
func newPrefilter(rules []rule, origins []Origin, more ...[]byte) *prefilter {
	f := &prefilter{complete: true, texts: more}
	for i := range rules {
		if !slices.Contains(origins, rules[i].Origin) {
			continue
		}
		for _, texts := range [][]string{rules[i].texts, rules[i].clearTexts} {
			for _, text := range texts {
				f.texts = append(f.texts, []byte(text))
			}
		}
		f.complete = f.complete && rules[i].searchable()
	}
	if slices.Contains(origins, Kernel) {
		f.texts = append(f.texts, companions...)
	}
	slices.SortFunc(f.texts, bytes.Compare)
	f.texts = slices.CompactFunc(f.texts, bytes.Equal)
	f.index()
	return f
}

// index makes the table.
func (f *prefilter) index() {
	if !f.complete || len(f.texts) == 0 {
		return
	}
	f.width = len(slices.MinFunc(f.texts, func(a, b []byte) int { return len(a) - len(b) }))
	f.width = min(f.width, 255)
	f.leap = bytes.Repeat([]byte{byte(f.width - 1)}, 1<<16)
	f.ending = map[uint16][][]byte{}
	for _, text := range f.texts {
		for end := 2; end <= f.width; end++ {
			block := binary.LittleEndian.Uint16(text[end-2:])
			f.leap[block] = min(f.leap[block], byte(f.width-end))
		}
		last := binary.LittleEndian.Uint16(text[f.width-2:])
		f.ending[last] = append(f.ending[last], text)
	}
}

// next returns the index of the first text in data, or -1.
func (f *prefilter) next(data []byte) int {
	if f.width == 0 {
		return -1
	}
	leap := (*[1 << 16]uint8)(f.leap)
	for at := f.width - 2; at+1 < len(data); {
		block := binary.LittleEndian.Uint16(data[at : at+2])
		if step := leap[block]; step != 0 {
			at += int(step)
			continue
		}
		begin := at + 2 - f.width
		for _, text := range f.ending[block] {
			if bytes.HasPrefix(data[begin:], text) {
				return begin
			}
		}
		at++
	}
	return -1
}

// has reports whether a rule may match a line.
func (f *prefilter) has(line []byte) bool { return !f.complete || f.next(line) >= 0 }

// lines calls yield with those lines of a chunk, in order, that a rule may match.
func (f *prefilter) lines(chunk []byte, yield func(line []byte)) {
	if !f.complete {
		for line := range bytes.Lines(chunk) {
			yield(bytes.TrimRight(line, "\r\n"))
		}
		return
	}
	for rest := chunk; ; {
		hit := f.next(rest)
		if hit < 0 {
			return
		}
		line := rest[bytes.LastIndexByte(rest[:hit], '\n')+1:]
		end := bytes.IndexByte(line, '\n')
		if end < 0 {
			yield(bytes.TrimRight(line, "\r"))
			return
		}
		yield(bytes.TrimRight(line[:end], "\r"))
		rest = line[end+1:]
	}
}
