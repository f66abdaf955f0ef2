package alertsetup

import (
	"testing/synctest"
	"time"
)

// wait lets one look at the files pass, in virtual time.
func wait() {
	time.Sleep(interval)
	synctest.Wait()
}
