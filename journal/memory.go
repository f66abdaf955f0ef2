package journal

import "fmt"

// Memory is a journal that lasts as long as the process: for tests, and for nodes whose
// pods do not outlive the agent.
type Memory struct {
	methods
	closed bool // guarded by mu
}

// NewMemory returns an empty journal in memory.
func NewMemory() *Memory {
	m := &Memory{}
	m.published = newTables()
	m.submit = m.write
	return m
}

func (m *Memory) write(write func(*edit)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("journal: write: %w", ErrClosed)
	}
	write(&edit{tables: m.published})
	return nil
}

// Close makes later writes fail.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
