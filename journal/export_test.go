package journal

// FailCommits makes every commit of the journal fail with cause, or with nil none. No write
// may be under way.
func (d *Durable) FailCommits(cause error) {
	s, ok := d.env.disk.(*scriptedDisk)
	if !ok {
		s = script(d)
	}
	s.before = func() error { return cause }
}
