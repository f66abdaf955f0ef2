package main

import (
	"os"
	"strings"
)

// trustAnyClock makes a kubeconfig without a check of the server's certificate: the certificate is
// younger than a day, so a clock that is a day behind would correctly reject it, which is not the
// subject of the test.
func trustAnyClock(kubeconfig string) error {
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		return err
	}
	var kept []string
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "certificate-authority-data" || name == "certificate-authority" {
			line = line[:strings.Index(line, name)] + "insecure-skip-tls-verify: true\n"
		}
		kept = append(kept, line)
	}
	return os.WriteFile(kubeconfig, []byte(strings.Join(kept, "")), 0o600)
}
