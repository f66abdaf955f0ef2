package journal

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// Outcome is the state in which the journal was found.
type Outcome string

const (
	// OutcomeNew: there was no journal.
	OutcomeNew Outcome = "new"
	// OutcomeClean: the journal had been closed.
	OutcomeClean Outcome = "clean"
	// OutcomeUnclean: the process had been killed or the power had failed. Nothing is lost.
	OutcomeUnclean Outcome = "unclean"
	// OutcomeRolledBack: the log is damaged; the commits before the damage hold, the commits after
	// it are lost.
	OutcomeRolledBack Outcome = "rolled back"
	// OutcomeRestored: the verified copy was used, with the later commits of the log.
	OutcomeRestored Outcome = "restored from copy"
	// OutcomeEmptied: neither the log nor the copy could be used.
	OutcomeEmptied Outcome = "emptied"
)

// Recovery is the state that Open found, and what Open did.
type Recovery struct {
	Outcome Outcome
	// Sequence and AsOf are the number and time of the newest commit in the journal.
	Sequence uint64
	AsOf     time.Time
	// MayHaveLost reports whether acknowledged writes after Sequence can be missing.
	MayHaveLost bool
	// Seen is the newest commit found in a damaged log; the commits after Sequence up to Seen are
	// lost.
	Seen uint64
	// Unfinished reports whether the log ended with a commit that a crash had interrupted. The
	// commit was not acknowledged, and was dropped.
	Unfinished bool
	// Damage has a line for each damaged file.
	Damage []string
	// MovedAside are the names of the kept damaged files.
	MovedAside []string
	// UpgradedFrom is the older format of the files, 0 if they had the current format.
	UpgradedFrom int
}

func (r Recovery) String() string {
	text := fmt.Sprintf("%s: commit %d", r.Outcome, r.Sequence)
	if !r.AsOf.IsZero() {
		text += " of " + r.AsOf.UTC().Format(time.RFC3339)
	}
	if r.MayHaveLost {
		text += ", later writes may be lost"
	}
	if r.Seen > r.Sequence {
		text += fmt.Sprintf(" (up to commit %d)", r.Seen)
	}
	if r.Unfinished {
		text += ", an unfinished commit was dropped"
	}
	if len(r.Damage) > 0 {
		text += "; " + strings.Join(r.Damage, "; ")
	}
	if len(r.MovedAside) > 0 {
		text += "; kept as " + strings.Join(r.MovedAside, ", ")
	}
	return text
}

// found is what reading a file gave. Neither data nor damage: there is no such file.
type found struct {
	data   []byte
	damage error
	exists bool
}

// contents reads the file's entries.
func (f found) contents() logContents {
	if !f.exists || f.damage != nil {
		return logContents{damage: f.damage}
	}
	return readLog(f.data)
}

// decision is which state the journal opens with, and which files are kept under another
// name before new ones replace them.
type decision struct {
	image               image
	recovery            Recovery
	logAside, copyAside bool
}

// decide chooses the state from the log and its copy. It is a function of what was read,
// so that every damage can be tried without a disk. An error means that nothing may be
// touched: the journal has another format, or belongs to another node.
func decide(log, backup found, f formats, node string) (decision, error) {
	if !log.exists && !backup.exists {
		return decision{recovery: Recovery{Outcome: OutcomeNew}}, nil
	}
	return weigh(log.contents(), backup.contents(), log, backup, f, node)
}

// weigh is decide after the files were read.
func weigh(log, spare logContents, logFile, spareFile found, f formats, node string) (decision, error) {
	if err := checkFormats(log, spare, logFile, spareFile, f); err != nil {
		return decision{}, err
	}
	d := choose(log, spare)
	d.logAside = log.damage != nil || (logFile.exists && d.recovery.Outcome == OutcomeRestored)
	d.copyAside = spareFile.exists && (spare.damage != nil || d.copyAside)
	d.recovery.Damage = append(d.recovery.Damage, damages(log, spare)...)
	if d.recovery.Outcome == OutcomeEmptied {
		return d, nil
	}
	if d.image.header.Node != node {
		return decision{}, fmt.Errorf("%w: it belongs to node %q, this is node %q", ErrOtherNode, d.image.header.Node, node)
	}
	d.recovery.Sequence, d.recovery.AsOf = d.image.header.Sequence, d.image.header.Committed
	if d.image.header.Format < f.current {
		d.recovery.UpgradedFrom = d.image.header.Format
		var err error
		if d.image, err = f.upgrade(d.image); err != nil {
			return decision{}, err
		}
	}
	return d, nil
}

// choose takes the snapshot, in the log or in the copy, from which the newest commit can be
// reached.
func choose(log, spare logContents) decision {
	own, hasOwn := log.snapshot()
	saved, hasSaved := spare.snapshot()
	foreign := hasOwn && hasSaved && own.header.ID != saved.header.ID
	if !hasOwn && !hasSaved {
		return decision{recovery: Recovery{Outcome: OutcomeEmptied, MayHaveLost: true, Seen: log.newest()}}
	}
	var d decision
	if hasOwn {
		d.image = replay(own, log.entries)
		d.recovery.Outcome = OutcomeUnclean
	}
	if hasSaved && !foreign {
		restored := replay(saved, log.entries)
		if !hasOwn || restored.header.Sequence > d.image.header.Sequence {
			d.image, d.recovery.Outcome = restored, OutcomeRestored
		}
	}
	if foreign {
		d.copyAside = true
		d.recovery.Damage = append(d.recovery.Damage, "copy: it belongs to another journal")
	}
	d.settle(log)
	return d
}

// settle finds out whether commits after the chosen state are missing. The log knows its
// end unless it is cut, damaged there, or older than the copy; and none follow the commit
// that closed the journal.
func (d *decision) settle(log logContents) {
	at, newest := d.image.header.Sequence, log.newest()
	endKnown := false
	if log.ends {
		last := log.entries[len(log.entries)-1].header
		endKnown = last.ID == d.image.header.ID && last.Sequence == at
	}
	d.recovery.MayHaveLost = newest > at || !(endKnown || d.image.header.Clean)
	d.recovery.Unfinished = log.unfinished
	if d.recovery.MayHaveLost {
		d.recovery.Seen = newest
	}
	if d.recovery.Outcome != OutcomeUnclean {
		return
	}
	switch {
	case d.recovery.MayHaveLost:
		d.recovery.Outcome = OutcomeRolledBack
	case d.image.header.Clean:
		d.recovery.Outcome = OutcomeClean
	}
}

// newest is the highest number of a commit in the file.
func (c logContents) newest() (sequence uint64) {
	for _, e := range c.entries {
		sequence = max(sequence, e.header.Sequence)
	}
	return sequence
}

// replay applies to a snapshot the commits of the log that follow it without a gap.
func replay(snapshot entry, commits []entry) image {
	img := image{records: make(map[recordKey][]byte, len(snapshot.writes))}
	img.apply(snapshot)
	for _, e := range commits {
		if !e.header.Whole && e.header.ID == img.header.ID && e.header.Sequence == img.header.Sequence+1 {
			img.apply(e)
		}
	}
	return img
}

// checkFormats refuses files that this code cannot read, also if the other one could be
// used: opening overwrites both.
func checkFormats(log, spare logContents, logFile, spareFile found, f formats) error {
	for _, file := range []struct {
		contents logContents
		found    found
	}{{log, logFile}, {spare, spareFile}} {
		for _, e := range file.contents.entries {
			if e.header.Format > f.current {
				return fmt.Errorf("%w: it has format %d", ErrNewerFormat, e.header.Format)
			}
		}
		if len(file.contents.entries) == 0 && isFormat1(file.found.data) {
			return fmt.Errorf("%w: it has format 1, which was a bbolt file", ErrOldFormat)
		}
	}
	return nil
}

// isFormat1 recognizes the files of format 1: a bbolt file by one of its two meta pages,
// which are in the byte order of the machine, and the copy by its beginning.
func isFormat1(data []byte) bool {
	const pageSize, magicAt, magic = 4096, 16, 0xED0CDAED
	for _, at := range []int{magicAt, pageSize + magicAt} {
		if len(data) < at+4 {
			break
		}
		if binary.LittleEndian.Uint32(data[at:]) == magic || binary.BigEndian.Uint32(data[at:]) == magic {
			return true
		}
	}
	return strings.HasPrefix(string(data[:min(8, len(data))]), "SDJCOPY1")
}

func damages(log, spare logContents) (lines []string) {
	if log.damage != nil {
		lines = append(lines, "log: "+log.damage.Error())
	}
	if spare.damage != nil {
		lines = append(lines, "copy: "+spare.damage.Error())
	}
	return lines
}
