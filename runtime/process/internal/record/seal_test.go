package record

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/proc"
)

var someTime = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// samples is one of each record, by the name of its file.
func samples() map[string]any {
	self := proc.ID{PID: 42, Start: 123456, Boot: "8f3c1a52-0d5e-4b7e-9a43-0c6f3a3c7f11"}
	return map[string]any{
		"spec.json": &Spec{ID: "process://0001", Name: "main", CreatedAt: someTime, Boot: self.Boot, Command: []string{"/bin/true"},
			Env: []string{"A=1"}, Dir: "/", User: &User{UID: 1000, GID: 1000}, StopSignal: 15, LogMaxBytes: 1 << 20, LogMaxFiles: 5},
		"shim.json":    &self,
		"started.json": &Started{Main: self, At: someTime},
		"stop.json":    &Stop{Grace: time.Minute},
		"exit.json":    &Exit{ExitCode: 3, Reason: "Error", Message: "no \"luck\"", StartedAt: someTime, FinishedAt: someTime},
	}
}

func empty(value any) any { return reflect.New(reflect.TypeOf(value).Elem()).Interface() }

func TestEachFlippedByteOfARecordIsNoticed(t *testing.T) {
	for name, value := range samples() {
		path := filepath.Join(t.TempDir(), name)
		if err := Write(path, value); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got := empty(value)
		if err := unseal(name, whole, got); err != nil || !reflect.DeepEqual(got, value) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, value)
		}
		for i := range whole {
			for _, bits := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 255} {
				damaged := append([]byte(nil), whole...)
				damaged[i] ^= bits
				if err := unseal(name, damaged, empty(value)); err == nil {
					t.Fatalf("%s: byte %d turned from %q into %q and nothing was noticed", name, i, whole[i], damaged[i])
				}
			}
		}
		for n := range whole {
			if err := unseal(name, whole[:n], empty(value)); !errors.Is(err, ErrDamaged) {
				t.Fatalf("%s: cut to %d bytes: got %v, want ErrDamaged", name, n, err)
			}
		}
	}
}

func TestWhatIsNoRecordIsNotTakenForOne(t *testing.T) {
	for name, value := range samples() {
		for _, text := range []string{"", "null", "{}", "[]", "0", `""`, "\x00\x00\x00\x00", "{", `{"half": `, "{}{}", `{"unknown":1}`} {
			if name == "stop.json" && text == "{}" {
				continue // no grace: what a release before this one means by it
			}
			err := unseal(name, []byte(text), empty(value))
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%s with %q: got %v, want ErrDamaged", name, text, err)
			}
		}
	}
}

func TestARecordDoesNotStandForAnother(t *testing.T) {
	for name, value := range samples() {
		sealed, err := seal(name, value)
		if err != nil {
			t.Fatal(err)
		}
		for other := range samples() {
			if err := unseal(other, sealed, empty(value)); (err == nil) != (other == name) {
				t.Errorf("%s read as %s: got %v", name, other, err)
			}
		}
	}
}

func TestANewerFormatIsNotDamage(t *testing.T) {
	rest := []byte(`","exitCode":3}`)
	format := "exit/v2"
	text := formatStart + format + sumStart + hex8(checksum(format, rest)) + string(rest)
	if err := unseal("exit.json", []byte(text), &Exit{}); !errors.Is(err, ErrNewerFormat) || errors.Is(err, ErrDamaged) {
		t.Errorf("got %v, want ErrNewerFormat", err)
	}
}

// A release that did not seal its records wrote plain JSON, and reads ours as such.
func TestRecordsOfTheReleaseBefore(t *testing.T) {
	for name, value := range samples() {
		plain, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		got := empty(value)
		if err := unseal(name, plain, got); err != nil || !reflect.DeepEqual(got, value) {
			t.Errorf("%s of the release before: got %+v, %v; want %+v", name, got, err, value)
		}
		sealed, err := seal(name, value)
		if err != nil {
			t.Fatal(err)
		}
		again := empty(value)
		if err := json.Unmarshal(sealed, again); err != nil || !reflect.DeepEqual(again, value) {
			t.Errorf("%s read by the release before: got %+v, %v; want %+v", name, again, err, value)
		}
	}
}

func TestASealedRecordIsOneLineOfJSON(t *testing.T) {
	for _, value := range []any{struct{}{}, samples()["exit.json"]} {
		sealed, err := seal("exit.json", value)
		if err != nil || !json.Valid(sealed) || !strings.HasPrefix(string(sealed), `{"format":"statusd.exit/v1","crc32c":"`) {
			t.Errorf("got %s, %v", sealed, err)
		}
	}
	if _, err := seal("exit.json", []int{1}); err == nil {
		t.Error("a value that is no object: got no error")
	}
}
