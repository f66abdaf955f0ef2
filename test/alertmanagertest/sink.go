package alertmanagertest

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// Message is what Alertmanager sends to its webhooks.
type Message struct {
	Status      string
	GroupLabels map[string]string
	Alerts      []Notified
	// At is when it arrived.
	At time.Time `json:"-"`
}

// Notified is an alert of a message.
type Notified struct {
	Status       string
	Labels       map[string]string
	Annotations  map[string]string
	StartsAt     time.Time
	EndsAt       time.Time
	GeneratorURL string
}

// Sink keeps what Alertmanager sends to it.
type Sink struct {
	mu       sync.Mutex // guards what follows
	messages []Message
	changed  chan struct{} // closed and replaced with each message
}

// NewSink returns an empty sink.
func NewSink() *Sink { return &Sink{changed: make(chan struct{})} }

// ServeHTTP takes a message.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	message := Message{At: time.Now()}
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, message)
	close(s.changed)
	s.changed = make(chan struct{})
}

// Wait returns once the messages so far satisfy a condition, or ctx ends.
func (s *Sink) Wait(ctx context.Context, satisfied func([]Message) bool) error {
	for {
		s.mu.Lock()
		messages, changed := s.messages, s.changed
		s.mu.Unlock()
		if satisfied(messages) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Messages returns those so far.
func (s *Sink) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages
}

// Last returns the newest status of each alert in messages, by the key that a function makes of its labels.
func Last(messages []Message, key func(labels map[string]string) string) map[string]string {
	last := map[string]string{}
	for _, message := range messages {
		for _, alert := range message.Alerts {
			last[key(alert.Labels)] = alert.Status
		}
	}
	return last
}
