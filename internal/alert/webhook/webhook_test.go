package webhook

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/endpoint"
	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/test/background"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func notification(state alert.State) engine.Notification {
	at := time.Now()
	n := engine.Notification{Alert: alert.Alert{
		Fingerprint: "f", Rule: "PodStuck", Severity: "warning", Scope: "container", State: state, Namespace: "default", Pod: "web", UID: "u", Container: "c",
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"summary": "s"}, Since: at, Firing: &at,
		Actions: []alert.Action{{Action: "evict", At: at, Result: "done", Message: "m"}},
	}}
	if state == alert.Resolved {
		n.Alert.Resolved = &at
	}
	return n
}

func run(t *testing.T, o Options) *Output {
	t.Helper()
	o.Name, o.Node, o.ExternalURL = "test", "n1", "https://n1"
	output, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	background.Run(t, output.Run)
	return output
}

type request struct {
	header http.Header
	body   []byte
}

func receiver(t *testing.T) (url string, requests chan request) {
	requests = make(chan request, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- request{r.Header, body}
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

func TestWhatIsSentIsWhatTheSchemaSays(t *testing.T) {
	url, requests := receiver(t)
	output := run(t, Options{Endpoint: endpoint.Options{URL: url}})
	var schema map[string]any
	if err := json.Unmarshal(Schema, &schema); err != nil {
		t.Fatal(err)
	}
	for _, state := range []alert.State{alert.Firing, alert.Resolved} {
		output.Notify(notification(state))
		got := <-requests
		var message any
		if err := json.Unmarshal(got.body, &message); err != nil {
			t.Fatal(err)
		}
		if err := validate(schema, schema, message, "message"); err != nil {
			t.Errorf("%v\n%s", err, got.body)
		}
	}
}

// The example of the documentation is a message.
func TestTheDocumentedMessageIsValid(t *testing.T) {
	page, err := os.ReadFile("../../../docs/use/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "<!-- message of a webhook -->")
	if !found {
		t.Fatal("docs/use/alerts.md has no message of a webhook")
	}
	_, rest, _ = strings.Cut(rest, "```json\n")
	example, _, _ := strings.Cut(rest, "```")
	var schema map[string]any
	var message any
	if err := errors.Join(json.Unmarshal(Schema, &schema), json.Unmarshal([]byte(example), &message)); err != nil {
		t.Fatal(err)
	}
	if err := validate(schema, schema, message, "message"); err != nil {
		t.Error(err)
	}
}

// Each field of a message is in the schema, and the other way around for alerts.
func TestTheSchemaNamesEachFieldOfAnAlert(t *testing.T) {
	full := notification(alert.Resolved).Alert
	full.Silenced = "s"
	text, err := json.Marshal(Alert{Alert: full, URL: "u"})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	var schema struct {
		Defs struct {
			Alert struct{ Properties map[string]any }
		} `json:"$defs"`
	}
	if err := errors.Join(json.Unmarshal(text, &fields), json.Unmarshal(Schema, &schema)); err != nil {
		t.Fatal(err)
	}
	for name := range schema.Defs.Alert.Properties {
		if _, there := fields[name]; !there {
			t.Errorf("the schema has %s, and an alert has not", name)
		}
	}
	for name := range fields {
		if _, there := schema.Defs.Alert.Properties[name]; !there {
			t.Errorf("an alert has %s, and the schema has not", name)
		}
	}
}

// validate is as much of JSON schema as schema.json uses; other words fail.
func validate(root, schema map[string]any, value any, where string) error {
	for word, rule := range schema {
		var err error
		switch word {
		case "$schema", "$id", "$defs", "title", "description", "properties":
		case "$ref":
			target := root["$defs"].(map[string]any)[strings.TrimPrefix(rule.(string), "#/$defs/")].(map[string]any)
			err = validate(root, target, value, where)
		case "type":
			err = validateType(rule.(string), value, where)
		case "enum":
			err = fmt.Errorf("%s: %v is none of %v", where, value, rule)
			for _, allowed := range rule.([]any) {
				if allowed == value {
					err = nil
				}
			}
		case "pattern":
			if !regexp.MustCompile(rule.(string)).MatchString(value.(string)) {
				err = fmt.Errorf("%s: %v does not match %v", where, value, rule)
			}
		case "format":
			_, err = time.Parse(time.RFC3339Nano, value.(string))
		case "items":
			for i, item := range value.([]any) {
				err = errors.Join(err, validate(root, rule.(map[string]any), item, fmt.Sprintf("%s[%d]", where, i)))
			}
		case "required":
			for _, name := range rule.([]any) {
				if _, there := value.(map[string]any)[name.(string)]; !there {
					err = fmt.Errorf("%s: %s is missing", where, name)
				}
			}
		case "additionalProperties":
			err = validateFields(root, schema, value.(map[string]any), where)
		default:
			err = fmt.Errorf("%s: the test does not know the word %s", where, word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func validateType(want string, value any, where string) error {
	got := ""
	switch value.(type) {
	case string:
		got = "string"
	case []any:
		got = "array"
	case map[string]any:
		got = "object"
	}
	if got != want {
		return fmt.Errorf("%s: is %q, want %q", where, got, want)
	}
	return nil
}

func validateFields(root, schema, value map[string]any, where string) error {
	properties, _ := schema["properties"].(map[string]any)
	others, _ := schema["additionalProperties"].(map[string]any)
	for name, field := range value {
		rule, known := properties[name].(map[string]any)
		if !known {
			rule = others
		}
		if rule == nil {
			return fmt.Errorf("%s: %s is not in the schema", where, name)
		}
		if err := validate(root, rule, field, where+"."+name); err != nil {
			return err
		}
	}
	return nil
}

func TestRequestsAreSigned(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url, requests := receiver(t)
	output := run(t, Options{Endpoint: endpoint.Options{URL: url}, SecretFile: secret})
	output.Notify(notification(alert.Firing))
	got := <-requests
	now := time.Now()
	if err := Verify(got.header, []byte("s3cret"), got.body, now, 5*time.Minute); err != nil {
		t.Errorf("the signature does not verify: %v", err)
	}
	if err := Verify(got.header, []byte("s3cret"), append(got.body, ' '), now, 5*time.Minute); !errors.Is(err, ErrSignature) {
		t.Errorf("another body: %v, want %v", err, ErrSignature)
	}
	if err := Verify(got.header, []byte("other"), got.body, now, 5*time.Minute); !errors.Is(err, ErrSignature) {
		t.Errorf("another secret: %v, want %v", err, ErrSignature)
	}
	if err := Verify(got.header, []byte("s3cret"), got.body, now.Add(10*time.Minute), 5*time.Minute); !errors.Is(err, ErrTimestamp) {
		t.Errorf("a replay after 10 minutes: %v, want %v", err, ErrTimestamp)
	}
	younger := got.header.Clone()
	younger.Set(TimestampHeader, fmt.Sprint(now.Add(10*time.Minute).Unix()))
	if err := Verify(younger, []byte("s3cret"), got.body, now.Add(10*time.Minute), 5*time.Minute); !errors.Is(err, ErrSignature) {
		t.Errorf("a replay with a younger timestamp: %v, want %v", err, ErrSignature)
	}
}

func TestWhatTheReceiverHasFromBeforeIsNotSentAgainButItsEndIs(t *testing.T) {
	url, requests := receiver(t)
	output := run(t, Options{Endpoint: endpoint.Options{URL: url}})
	before := notification(alert.Firing)
	before.Again = true
	output.Notify(before)
	output.Notify(notification(alert.Resolved))
	var message Message
	if err := json.Unmarshal((<-requests).body, &message); err != nil || message.Alerts[0].State != alert.Resolved {
		t.Errorf("got %+v, %v; want the end alone", message, err)
	}
}

// Whatever a receiver answers, a try ends, and only 2xx is a success.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
	f.Add([]byte("HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\n"))
	f.Add([]byte("\x16\x03\x01"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Skip(err)
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			defer connection.Close()
			if request, err := http.ReadRequest(bufio.NewReader(connection)); err == nil {
				_, _ = io.Copy(io.Discard, request.Body)
			}
			_, _ = connection.Write(answer)
		}()
		receiver, err := NewReceiver(endpoint.Options{URL: "http://" + listener.Addr().String()}, "")
		if err != nil {
			t.Fatal(err)
		}
		err = receiver.post(t.Context(), []byte("{}"))
		receiver.Close()
		listener.Close()
		<-served
		if line, _, _ := strings.Cut(string(answer), "\r\n"); err == nil && !regexp.MustCompile(`HTTP/\d\.\d +2\d\d|HTTP/\d\.\d +1\d\d`).MatchString(line) {
			t.Fatalf("%q counts as a success", answer)
		}
	})
}
