package configfile

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

type base struct {
	Name string `yaml:"name"`
}

const text = `# Heading.

# Version of this file's format.
apiVersion: test/v1
kind: Test

# Name of the thing.
# On two lines.
# Flag: --name
name: one

limits:
  # How long.
  # Flag: --wait
  wait: 3s
  # By key.
  byKey: {a: b}
`

func newFile(t *testing.T, text string) *File[config] {
	t.Helper()
	return New[config](Options{
		Text: text, Command: "test default", APIVersion: "test/v1", Kind: "Test",
		Former: map[string]string{"limits.pause": "write limits.wait", "old": "write name"},
	})
}

type config struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Base       base   `yaml:",inline"`
	Limits     struct {
		Wait  time.Duration     `yaml:"wait"`
		ByKey map[string]string `yaml:"byKey"`
	} `yaml:"limits"`
	Socket string `yaml:"-"`
}

func TestDefault_IsTheFile(t *testing.T) {
	c := newFile(t, text).Default()
	if c.Base.Name != "one" || c.Limits.Wait != 3*time.Second || !reflect.DeepEqual(c.Limits.ByKey, map[string]string{"a": "b"}) {
		t.Errorf("got %+v", c)
	}
}

func TestLoad_KeepsTheDefaultsOfWhatAFileDoesNotName(t *testing.T) {
	f := newFile(t, text)
	c, err := f.Load("f", []byte("apiVersion: test/v1\nkind: Test\nlimits: {wait: 1s}\n"))
	if want := f.Default(); err != nil || c.Limits.Wait != time.Second || c.Base.Name != want.Base.Name || c.Limits.ByKey["a"] != "b" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestLoad_NamesMistakesWithTheirLine(t *testing.T) {
	head := "apiVersion: test/v1\nkind: Test\n"
	for data, want := range map[string]string{
		"":                                       "config: f: is apiVersion \"\", kind \"\"; want apiVersion: test/v1, kind: Test",
		head + "nmae: x\n":                       `config: f:3: unknown field "nmae" (did you mean name?); test default lists all fields`,
		head + "old: x\n":                        "config: f:3: old is no longer a setting: write name",
		head + "limits:\n  pause: 1s\n":          "config: f:4: limits.pause is no longer a setting: write limits.wait",
		head + "limits: {pause: 1s, wait: 1s}\n": "config: f:3: limits.pause is no longer a setting: write limits.wait",
		head + "limits:\n  wait: soon\n":         `config: f:4: got "soon", want a duration such as 1m30s`,
		head + "limits:\n  wait: [1s]\n":         "config: f:4: got a list, want a duration such as 1m30s",
		head + "---\n" + head:                    "config: f: has more than one YAML document; want one",
		head + "name: a\nname: b\n":              `config: f:4: mapping key "name" already defined at line 3`,
		"apiVersion: test/v2\nkind: Test":        "config: f: is apiVersion \"test/v2\", kind \"Test\"; want apiVersion: test/v1, kind: Test",
	} {
		if _, err := newFile(t, text).Load("f", []byte(data)); err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", data, err, want)
		}
	}
}

func TestNew_PanicsWhereFileAndTypeDiffer(t *testing.T) {
	for name, wrong := range map[string]string{
		"a field that Config has not": text + "other: 1\n",
		"a field that is missing":     strings.Replace(text, "  # By key.\n  byKey: {a: b}\n", "", 1),
		"a field without a comment":   strings.Replace(text, "  # By key.\n", "", 1),
		"a value of the wrong type":   strings.Replace(text, "wait: 3s", "wait: long", 1),
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the file was accepted")
				}
			}()
			newFile(t, wrong)
		})
	}
}

func TestFlags_ChangeTheConfig(t *testing.T) {
	f := newFile(t, text)
	c := f.Default()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.AddFlags(&c, flags)
	if err := flags.Parse([]string{"--name=two", "--wait=1m"}); err != nil {
		t.Fatal(err)
	}
	if c.Base.Name != "two" || c.Limits.Wait != time.Minute {
		t.Errorf("got %+v", c)
	}
	if usage := flags.Lookup("name").Usage; usage != "Name of the thing. On two lines." {
		t.Errorf("the help is %q", usage)
	}
}

// What Write writes of the defaults is the default file.
func TestWrite_OfTheDefaultIsTheFile(t *testing.T) {
	f := newFile(t, text)
	c := f.Default()
	var out strings.Builder
	if err := f.Write(&out, "Heading.", &c); err != nil || out.String() != f.Text() {
		t.Errorf("got %v\n%s\nwant\n%s", err, out.String(), f.Text())
	}
}

func TestTable_HasEachSetting(t *testing.T) {
	want := "| field | flag | default | what it is for |\n|---|---|---|---|\n" +
		"| `name` | `--name` | `one` | Name of the thing. On two lines. |\n" +
		"| `limits.wait` | `--wait` | `3s` | How long. |\n" +
		"| `limits.byKey` |  | `{a: b}` | By key. |\n"
	if got := newFile(t, text).Table(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
