package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/statusd/statusd/test/child"
	"github.com/statusd/statusd/test/robustness/agent"
	"github.com/statusd/statusd/test/robustness/record"
)

// process is a process of the agent.
type process struct {
	*child.Process
	number   int
	commands chan agent.Command
	drained  chan struct{} // closed when all that it wrote was read
	looks    chan record.Record
}

// agentArgument makes this program be the agent.
const agentArgument = "agent"

// backlog is how many commands may wait for a process that is stopped: about one for each pod.
const backlog = 10_000

// startAgent starts a process; what it writes goes to the history and to took.
func startAgent(binary string, number int, args []string, log io.Writer, history *record.Writer, took func(record.Record)) (*process, error) {
	args = append([]string{strconv.Itoa(number)}, args...)
	if binary == "" {
		binary, args = os.Args[0], append([]string{agentArgument}, args...)
	}
	cmd := exec.Command(binary, args...)
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = w
	p := &process{number: number, commands: make(chan agent.Command, backlog), drained: make(chan struct{}), looks: make(chan record.Record, 1)}
	p.Process, err = child.Start(cmd, syscall.SIGKILL)
	if w.Close(); err != nil {
		out.Close()
		return nil, err
	}
	go p.write(in)
	go func() {
		defer close(p.drained)
		defer out.Close()
		p.read(out, history, took)
	}()
	return p, nil
}

// write sends the process its commands until it has ended.
func (p *process) write(in io.WriteCloser) {
	defer in.Close()
	for {
		select {
		case c := <-p.commands:
			line, _ := json.Marshal(c)
			if _, err := in.Write(append(line, '\n')); err != nil {
				return
			}
		case <-p.Exited:
			return
		}
	}
}

// read takes in what the process writes; a last line that a kill has cut is left out.
func (p *process) read(out io.Reader, history *record.Writer, took func(record.Record)) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var r record.Record
		if json.Unmarshal(line, &r) != nil {
			continue
		}
		history.Line(line)
		if r.Kind == record.Look && r.Measures != nil {
			select {
			case p.looks <- r:
			default:
			}
		}
		took(r)
	}
}

// send has the process do the commands.
func (p *process) send(commands ...agent.Command) {
	for _, c := range commands {
		select {
		case p.commands <- c:
		case <-p.Exited:
		}
	}
}
