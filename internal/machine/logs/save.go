package logs

import "time"

// saver writes states in a goroutine of its own, one at a time, so that a disk that hangs holds neither
// reports nor the reading of logs. A state that was not begun when a newer one comes is not written.
type saver struct {
	write func(data []byte)
	next  chan snapshot // capacity 1: the newest
	ended chan struct{}
}

// snapshot is an encoded state. Done is closed when it is written or replaced by a newer one.
type snapshot struct {
	data []byte
	done chan struct{}
}

func newSaver(write func([]byte)) *saver {
	return &saver{write: write, next: make(chan snapshot, 1), ended: make(chan struct{})}
}

// run writes until close is called and the newest state is written.
func (s *saver) run() {
	defer close(s.ended)
	for next := range s.next {
		s.write(next.data)
		close(next.done)
	}
}

// put takes a state that is newer than all before, and returns when it is written, or after patience. It is called
// from one goroutine.
func (s *saver) put(data []byte, patience time.Duration) {
	select {
	case older := <-s.next:
		close(older.done)
	default:
	}
	next := snapshot{data, make(chan struct{})}
	s.next <- next // there is room: only this goroutine sends
	await(next.done, patience)
}

// close ends run after the newest state, and waits for it at most for patience.
func (s *saver) close(patience time.Duration) bool {
	close(s.next)
	return await(s.ended, patience)
}

// await reports whether a channel was closed within a time.
func await(c <-chan struct{}, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return false
	}
}
