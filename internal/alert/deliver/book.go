package deliver

import (
	"container/list"
	"maps"
	"time"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/engine"
)

// place is where an entry of the book is.
type place int

const (
	waiting  place = iota // to be sent
	inFlight              // in a batch that is being sent
	kept                  // the receiver has it; it is sent again when its time comes
)

// entry is the state of one alert.
type entry struct {
	alert alert.Alert
	done  func() // nil if it was called
	place place
	// element is the entry's element in the list waiting or in the list kept.
	element *list.Element
	// changed means that the alert became another one while it was in flight.
	changed bool
	// reached means that the receiver may have received the alert as firing, so that its end must be
	// sent.
	reached bool
	// at is since when the entry is where it is.
	at time.Time
}

// book knows which alerts are to be sent. It is not safe for concurrent use.
type book struct {
	// born is when the process began to deliver: an alert that has fired before may be known to the receiver.
	born   time.Time
	most   int           // alerts at a time
	repeat time.Duration // 0: never
	// dropped is called for each alert that is not going to be sent.
	dropped func(reason string)
	// finished are the calls that are owed for notifications which are delivered or dropped.
	finished []func()

	entries map[string]*entry // by fingerprint
	waiting *list.List        // of *entry, the longest waiting first
	kept    *list.List        // of *entry, the first sent first
}

// Why alerts are not sent, as the label of the metric.
const (
	DroppedFull       = "full"       // too many alerts at a time
	DroppedSuperseded = "superseded" // it was over before it was sent
	DroppedSilenced   = "silenced"   // a silence came before it was sent
	DroppedRefused    = "refused"    // the receiver does not take it
)

func newBook(born time.Time, most int, repeat time.Duration, dropped func(reason string)) *book {
	return &book{born: born, most: most, repeat: repeat, dropped: dropped, entries: map[string]*entry{}, waiting: list.New(), kept: list.New()}
}

// put takes the newest state of an alert and reports whether there is something to do now.
func (b *book) put(n engine.Notification, now time.Time) bool {
	e := b.entries[n.Alert.Fingerprint]
	switch {
	case n.Alert.State == alert.Firing && n.Alert.Silenced == "":
		b.fires(e, n, now)
	case n.Alert.State == alert.Firing:
		b.silence(e, n)
	case n.Alert.State == alert.Resolved:
		b.ends(e, n, now)
	default: // the receiver need not get pending alerts
		b.finish(n.Done)
	}
	return b.waiting.Len() > 0 || len(b.finished) > 0
}

func (b *book) fires(e *entry, n engine.Notification, now time.Time) {
	if e == nil {
		if !b.makeRoom() {
			b.finish(n.Done)
			return
		}
		e = &entry{}
		b.entries[n.Alert.Fingerprint] = e
	}
	e.reached = e.reached || n.Again
	if e.place != waiting && !e.changed && same(e.alert, n.Alert) {
		b.join(e, n.Done)
		return
	}
	b.renew(e, n, now)
}

// join makes a duplicate notification finish together with the queued notification of the same
// content.
func (b *book) join(e *entry, done func()) {
	if first := e.done; first != nil && done != nil {
		e.done = func() { first(); done() }
		return
	}
	b.finish(done)
}

// had takes a firing alert that the receiver has from before, and that need not be sent.
func (b *book) had(n engine.Notification) {
	b.finish(n.Done)
	if b.entries[n.Alert.Fingerprint] == nil && b.makeRoom() {
		e := &entry{alert: n.Alert, reached: true}
		b.entries[n.Alert.Fingerprint] = e
		b.rest(e)
	}
}

// ends takes the end of an alert. The receiver needs it if it may know the alert.
func (b *book) ends(e *entry, n engine.Notification, now time.Time) {
	// The receiver may know an alert from the process before this one.
	inherited := n.Again || n.Alert.Firing == nil || n.Alert.Firing.Before(b.born)
	switch {
	case e == nil && !inherited: // its firing was dropped, or its end was sent
		b.finish(n.Done)
	case e == nil && !b.makeRoom():
		b.finish(n.Done)
	case e == nil:
		e = &entry{reached: true}
		b.entries[n.Alert.Fingerprint] = e
		b.renew(e, n, now)
	case e.place == waiting && !e.reached && !inherited:
		b.forget(e)
		b.finish(n.Done)
		b.dropped(DroppedSuperseded)
	case e.place == inFlight && !e.changed && same(e.alert, n.Alert):
		b.join(e, n.Done)
	default:
		e.reached = e.reached || inherited
		b.renew(e, n, now)
	}
}

// silence keeps an alert from being sent, and sent again. Its end is sent if the receiver may have the alert. An
// unsent alert is not finished: it is sent when the silence ends.
func (b *book) silence(e *entry, n engine.Notification) {
	if e != nil && (e.reached || e.place != waiting) {
		b.finish(n.Done)
	}
	switch {
	case e == nil, e.alert.State != alert.Firing:
	case e.place == waiting && !e.reached:
		e.done = nil
		b.forget(e)
		b.dropped(DroppedSilenced)
	case e.place == inFlight:
		e.alert.Silenced, e.changed = n.Alert.Silenced, false
	default:
		e.alert.Silenced = n.Alert.Silenced
		b.rest(e)
	}
}

// rest keeps an alert in no list: it is neither sent nor sent again until it changes.
func (b *book) rest(e *entry) {
	b.unlist(e)
	e.place = kept
}

// renew has the newest state of an alert sent.
func (b *book) renew(e *entry, n engine.Notification, now time.Time) {
	b.finish(e.done) // the newer one takes its place
	e.alert, e.done = n.Alert, n.Done
	switch e.place {
	case inFlight:
		e.changed = true
		return
	case kept:
		b.unlist(e)
	}
	if e.element == nil {
		b.await(e, now)
	}
}

func (b *book) finish(done func()) {
	if done != nil {
		b.finished = append(b.finished, done)
	}
}

// same reports whether the receiver would learn nothing from b after a.
func same(a, b alert.Alert) bool {
	return a.State == b.State && a.Silenced == b.Silenced && a.Severity == b.Severity &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

// makeRoom reports whether one more alert fits. The end that has waited longest goes first: receivers
// let alerts expire, but they cannot guess what fires.
func (b *book) makeRoom() bool {
	if len(b.entries) < b.most {
		return true
	}
	b.dropped(DroppedFull)
	for element := b.waiting.Front(); element != nil; element = element.Next() {
		if e := element.Value.(*entry); e.alert.State == alert.Resolved {
			b.forget(e)
			return true
		}
	}
	return false
}

// take returns up to most alerts that are to be sent now. Each must be settled.
func (b *book) take(most int, now time.Time) []alert.Alert {
	for element := b.kept.Front(); element != nil && !b.repeatAt(element).After(now); element = b.kept.Front() {
		e := element.Value.(*entry)
		b.unlist(e)
		b.await(e, now)
	}
	var batch []alert.Alert
	for len(batch) < most && b.waiting.Len() > 0 {
		e := b.waiting.Front().Value.(*entry)
		b.unlist(e)
		e.place, e.changed, e.at = inFlight, false, now
		batch = append(batch, e.alert)
	}
	return batch
}

// outcome is what became of an alert that was in flight.
type outcome int

const (
	delivered outcome = iota
	refused           // the receiver will never take it
	failed            // it may have arrived, or not
	unsent            // it has certainly not arrived
)

// settle ends the flight of an alert.
func (b *book) settle(sent alert.Alert, o outcome, now time.Time) {
	e := b.entries[sent.Fingerprint]
	if e == nil || e.place != inFlight {
		return
	}
	if sent.State == alert.Firing && (o == delivered || o == failed) {
		e.reached = true
	}
	if o == refused {
		b.dropped(DroppedRefused)
	}
	if !e.changed && (o == delivered || o == refused) {
		b.finish(e.done)
		e.done = nil
	}
	switch {
	case e.alert.Silenced != "" && e.alert.State == alert.Firing:
		b.rest(e)
	case e.changed && e.alert.State == alert.Resolved && !e.reached:
		b.forget(e)
		b.dropped(DroppedSuperseded)
	case e.changed, o == failed, o == unsent:
		b.await(e, now)
	case e.alert.State == alert.Resolved, b.repeat == 0 && o == refused:
		b.forget(e)
	case b.repeat == 0:
		b.rest(e)
	default: // a refused alert is kept too: the receiver may accept a repetition after a repair
		e.place, e.at, e.element = kept, now, b.kept.PushBack(e)
	}
}

// resend has the alerts sent that the receiver had at a time: it was away since, and may have forgotten
// them.
func (b *book) resend(had, now time.Time) {
	for first := b.kept.Front(); first != nil && !first.Value.(*entry).at.After(had); first = b.kept.Front() {
		e := first.Value.(*entry)
		b.unlist(e)
		b.await(e, now)
	}
}

// due is when there is something to send, zero if nothing is until the next put.
func (b *book) due(now time.Time) time.Time {
	if b.waiting.Len() > 0 {
		return now
	}
	if first := b.kept.Front(); first != nil {
		return b.repeatAt(first)
	}
	return time.Time{}
}

func (b *book) repeatAt(element *list.Element) time.Time {
	return element.Value.(*entry).at.Add(b.repeat)
}

func (b *book) await(e *entry, now time.Time) {
	e.place, e.at, e.element = waiting, now, b.waiting.PushBack(e)
}

func (b *book) unlist(e *entry) {
	if e.element == nil {
		return
	}
	if e.place == waiting {
		b.waiting.Remove(e.element)
	} else {
		b.kept.Remove(e.element)
	}
	e.element = nil
}

func (b *book) forget(e *entry) {
	b.finish(e.done)
	e.done = nil
	b.unlist(e)
	delete(b.entries, e.alert.Fingerprint)
}
