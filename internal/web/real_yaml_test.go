//go:build real

package web_test

import (
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// writer reads JSON values, one a line, and writes each as YAML, with a NUL after it.
const writer = `
import { createInterface } from 'node:readline';
import { toYAML } from './page/yaml.js';
for await (const line of createInterface({ input: process.stdin })) process.stdout.write(toYAML(JSON.parse(line)) + '\0');
`

// What the page writes as YAML is read back as the same value, by the reader that kubectl has.
func TestYAMLIsReadBack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var values []any
	var input strings.Builder
	for range 2000 {
		value := randomValue(random, 4)
		values = append(values, value)
		input.WriteString(encode(value) + "\n")
	}
	command := exec.Command("node", "--input-type=module", "--eval", writer)
	command.Stdin = strings.NewReader(input.String())
	output, err := command.Output()
	if err != nil {
		t.Fatalf("node (Debian: apt-get install nodejs): %v", err)
	}
	texts := strings.Split(strings.TrimSuffix(string(output), "\x00"), "\x00")
	if len(texts) != len(values) {
		t.Fatalf("%d texts for %d values", len(texts), len(values))
	}
	for i, text := range texts {
		back, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Errorf("%v\n%s\n%s", err, encode(values[i]), text)
			continue
		}
		var got, want any
		if json.Unmarshal(back, &got) != nil || json.Unmarshal([]byte(encode(values[i])), &want) != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is written as\n%sand read as %s", encode(values[i]), text, back)
		}
	}
}

// pieces are what text is made of: what YAML could take for something else.
var pieces = []string{
	"a", "B-c", "x/y.z", " ", "  ", "\n", "\t", ":", ": ", "#", " #", "-", "- ", "?", "|", ">", "'", "\"", "\\", "{", "}", "[", "]", ",", "&", "*", "!", "%", "@", "`",
	"true", "no", "Y", "null", "~", "0", "1e3", "0x1f", "1_000", "12:30:45", ".5", ".inf", "+1", "2026-01-02", "<<", "=", "---", "...", "é", "\u00a0", "\u0085", "\u2028", "\ufeff", "😀", "\x07", "\x7f", "\r",
}

func randomText(random *rand.Rand) string {
	var b strings.Builder
	for range random.IntN(5) {
		b.WriteString(pieces[random.IntN(len(pieces))])
	}
	return b.String()
}

func randomValue(random *rand.Rand, depth int) any {
	switch n := random.IntN(9); {
	case n < 4 || depth == 0:
		return randomText(random)
	case n == 4:
		return random.IntN(1000) - 500
	case n == 5:
		return []any{nil, true, false, 0.25}[random.IntN(4)]
	case n == 6:
		list := []any{}
		for range random.IntN(4) {
			list = append(list, randomValue(random, depth-1))
		}
		return list
	default:
		object := map[string]any{}
		for range random.IntN(4) {
			object[randomText(random)] = randomValue(random, depth-1)
		}
		return object
	}
}
