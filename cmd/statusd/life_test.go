package main

import (
	"strings"
)

const staticPod = `apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - {name: main, image: host, command: [sleep, "1000000"], env: [{name: EDITION, value: "1"}]}
`

func staticManifest(name string) string { return strings.Replace(staticPod, "NAME", name, 1) }
