// Package wake wakes a goroutine that looks at everything when it is woken, so that one pending
// signal is enough.
package wake

// Up leaves a signal in c unless one is pending. Up never blocks. The capacity of c must be 1.
func Up(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
