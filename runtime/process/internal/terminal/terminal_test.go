package terminal

import (
	"bufio"
	"testing"

	"golang.org/x/sys/unix"
)

func TestATerminalEchoesAndHasASize(t *testing.T) {
	master, slave, err := Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	if err := Resize(master, 132, 43); err != nil {
		t.Fatal(err)
	}
	if size, err := unix.IoctlGetWinsize(int(slave.Fd()), unix.TIOCGWINSZ); err != nil || size.Col != 132 || size.Row != 43 {
		t.Errorf("got %+v, %v; want 132 by 43", size, err)
	}
	if _, err := master.WriteString("typed\r"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(slave).ReadString('\n'); line != "typed\n" || err != nil {
		t.Errorf("got %q, %v; want what was typed", line, err)
	}
	if line, err := bufio.NewReader(master).ReadString('\n'); line != "typed\r\n" || err != nil {
		t.Errorf("got %q, %v; want the echo", line, err)
	}
}
