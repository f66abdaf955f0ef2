package journal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Outcome is how the journal was found.
type Outcome string

const (
	// New: there was no journal.
	New Outcome = "new"
	// Clean: it had been closed.
	Clean Outcome = "clean"
	// Unclean: the process had been killed or the power had failed. Nothing is lost.
	Unclean Outcome = "unclean"
	// RolledBack: the newest of the two meta pages was damaged and the commit before it
	// holds. The last commit is lost if it had been acknowledged.
	RolledBack Outcome = "rolled back"
	// Restored: the verified copy took over.
	Restored Outcome = "restored from copy"
	// Emptied: neither the file nor the copy could be used.
	Emptied Outcome = "emptied"
)

// Recovery tells what Open found and did.
type Recovery struct {
	Outcome Outcome
	// Sequence and AsOf are number and time of the newest commit that the journal holds.
	Sequence uint64
	AsOf     time.Time
	// MayHaveLost says that acknowledged writes after Sequence can be missing.
	MayHaveLost bool
	// Seen is the newest commit of which the damaged file still shows a trace; commits
	// after Sequence up to it are lost for sure.
	Seen uint64
	// Damage has a line for each damaged file or page.
	Damage []string
	// MovedAside are the names under which damaged files were kept.
	MovedAside []string
	// UpgradedFrom is the older format that was found, 0 if there was none.
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

// candidate is a file after checking.
type candidate struct {
	exists bool
	image  image
	usable bool
	damage error
	// metaDamage: see boltContents.
	metaDamage error
	// seen is the newest root record anywhere in the file.
	seen uint64
}

// decision is which state the journal opens with, and what to do with the files before.
type decision struct {
	image    image
	recovery Recovery
	// rebuild says that the database has to be written anew from the image.
	rebuild bool
	// What to keep under another name. A database of an old format that is whole is not
	// kept: the new file takes its place in one step.
	databaseAside, copyAside bool
}

// decide chooses between the database and its copy. It is a function of what was read, so
// that every damage can be tried without a disk. An error means that nothing may be
// touched: the journal is newer, or another node's.
func decide(database, backup found, f formats, node string) (decision, error) {
	if !database.exists && !backup.exists {
		return decision{rebuild: true, recovery: Recovery{Outcome: New}}, nil
	}
	db, err := checkDatabase(database, f.current)
	if err != nil {
		return decision{}, err
	}
	spare, err := checkCopy(backup, f.current)
	if err != nil { // even if the database could be used: opening would overwrite the copy
		return decision{}, err
	}
	return weigh(db, spare, f, node)
}

// weigh is decide after the files were checked.
func weigh(db, spare candidate, f formats, node string) (d decision, err error) {
	d = choose(db, spare)
	d.databaseAside = d.rebuild && db.exists
	d.copyAside = spare.damage != nil
	d.recovery.Damage = damages(db, spare)
	if d.recovery.Outcome == Emptied {
		return d, nil
	}
	if d.image.root.Node != node {
		return decision{}, fmt.Errorf("%w: it belongs to node %q, this is node %q", ErrOtherNode, d.image.root.Node, node)
	}
	d.recovery.Sequence, d.recovery.AsOf = d.image.root.Sequence, d.image.root.Committed
	if d.image.root.Format < f.current {
		d.recovery.UpgradedFrom, d.rebuild = d.image.root.Format, true
		d.image, err = f.upgrade(d.image)
	}
	return d, err
}

func choose(db, spare candidate) decision {
	newer := spare.usable && spare.image.root.ID == db.image.root.ID &&
		spare.image.root.Sequence > db.image.root.Sequence
	switch {
	case db.usable && !newer:
		return keepDatabase(db)
	case spare.usable:
		// The copy of a closed journal holds everything: it is written last, and opening
		// renews it before any write is taken. If the database merely lost its newest
		// meta page, then that was the one commit which the copy has more.
		complete := spare.image.root.Clean || (db.usable && db.metaDamage != nil)
		return decision{image: spare.image, rebuild: true, recovery: Recovery{
			Outcome: Restored, MayHaveLost: !complete, Seen: db.seen}}
	default:
		return decision{rebuild: true, recovery: Recovery{Outcome: Emptied, MayHaveLost: true, Seen: db.seen}}
	}
}

func keepDatabase(db candidate) decision {
	d := decision{image: db.image, recovery: Recovery{Outcome: Unclean}}
	switch {
	case db.image.root.Clean:
		d.recovery.Outcome = Clean
	case db.metaDamage != nil && db.seen > db.image.root.Sequence:
		// A commit writes its pages, syncs, and writes the meta page last. Pages of a
		// newer commit and no meta page for it: either that commit never ended, or its
		// meta page was damaged later. Nobody can tell, so say it.
		d.recovery.Outcome, d.recovery.MayHaveLost, d.recovery.Seen = RolledBack, true, db.seen
	}
	return d
}

// checkDatabase returns an error only for a newer format.
func checkDatabase(file found, current int) (candidate, error) {
	if !file.exists {
		return candidate{}, nil
	}
	c := candidate{exists: true, damage: file.damage}
	if c.damage == nil {
		var contents boltContents
		contents, c.damage = readBolt(file.data)
		c.metaDamage = contents.metaDamage
		if c.damage == nil {
			c.image, c.damage = newImage(contents.records, current)
		}
	}
	return c.settle(file.data)
}

// checkCopy returns an error only for a newer format.
func checkCopy(file found, current int) (candidate, error) {
	if !file.exists {
		return candidate{}, nil
	}
	c := candidate{exists: true, damage: file.damage}
	if c.damage == nil {
		var records map[recordKey][]byte
		records, c.damage = decodeCopy(file.data)
		if c.damage == nil {
			c.image, c.damage = newImage(records, current)
		}
	}
	return c.settle(nil)
}

func (c candidate) settle(data []byte) (candidate, error) {
	if errors.Is(c.damage, ErrNewerFormat) {
		return candidate{}, fmt.Errorf("%w: it has format %d", ErrNewerFormat, c.image.root.Format)
	}
	c.usable = c.damage == nil
	if !c.usable {
		c.image = image{}
	}
	if !c.usable || c.metaDamage != nil {
		c.seen = newestRoot(data)
	}
	return c, nil
}

// newestRoot looks for root records anywhere in the data, whatever the pages say. Their
// checksum covers their name, so that nothing else can pass for one.
func newestRoot(data []byte) (sequence uint64) {
	for {
		i := bytes.Index(data, []byte(envelopeMagic))
		if i < 0 {
			return sequence
		}
		data = data[i:]
		if bytes.HasPrefix(data[min(envelopeHeader, len(data)):], []byte(rootPayloadStart)) {
			if r, err := unsealRoot(data); err == nil {
				sequence = max(sequence, r.Sequence)
			}
		}
		data = data[1:]
	}
}

func damages(db, spare candidate) (lines []string) {
	for _, part := range []struct {
		what string
		err  error
	}{{"database", db.damage}, {"database", db.metaDamage}, {"copy", spare.damage}} {
		if part.err != nil {
			lines = append(lines, part.what+": "+part.err.Error())
		}
	}
	return lines
}
