package install

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// The parts of an SPDX 2.3 document that a bill of materials of a Go program has.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		License       string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID        string          `json:"SPDXID"`
		Name      string          `json:"name"`
		Version   string          `json:"versionInfo"`
		Download  string          `json:"downloadLocation"`
		Analyzed  bool            `json:"filesAnalyzed"`
		Checksums []spdxChecksum  `json:"checksums,omitempty"`
		External  []spdxReference `json:"externalRefs,omitempty"`
		License   string          `json:"licenseConcluded"`
		Declared  string          `json:"licenseDeclared"`
		Copyright string          `json:"copyrightText"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxReference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

// bill is the bill of materials of a program: the modules and the version of Go that the linker has recorded in it.
func (r Release) bill(name, program, arch string) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("bill of materials: %w", err)
	}
	sum, err := checksum(program)
	if err != nil {
		return nil, err
	}
	const subject = "SPDXRef-Program"
	document := spdxDocument{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: fmt.Sprintf("%s %s linux/%s", name, r.Version, arch),
		Namespace: fmt.Sprintf("https://github.com/statusd/statusd/spdx/%s/%s-linux-%s-%s", r.Version, name, arch, sum[:16]),
		Creation:  spdxCreation{r.Time.UTC().Format(time.RFC3339), []string{"Tool: statusd-release"}},
		Packages: []spdxPackage{
			{ID: subject, Name: name, Version: r.Version, Download: "https://github.com/statusd/statusd", Checksums: []spdxChecksum{{"SHA256", sum}},
				License: "Apache-2.0", Declared: "Apache-2.0", Copyright: none},
			module("SPDXRef-Go", "stdlib", strings.TrimPrefix(info.GoVersion, "go")),
		},
		Relationships: []spdxRelationship{{"SPDXRef-DOCUMENT", "DESCRIBES", subject}, {subject, "DEPENDS_ON", "SPDXRef-Go"}},
	}
	for i, dependency := range info.Deps {
		id := fmt.Sprintf("SPDXRef-Module-%d", i+1)
		used := replaced(dependency)
		document.Packages = append(document.Packages, module(id, used.Path, used.Version))
		document.Relationships = append(document.Relationships, spdxRelationship{subject, "DEPENDS_ON", id})
	}
	text, err := json.MarshalIndent(document, "", "  ")
	return append(text, '\n'), err
}

const none = "NOASSERTION"

func module(id, path, version string) spdxPackage {
	return spdxPackage{ID: id, Name: path, Version: version, Download: none, License: none, Declared: none, Copyright: none,
		External: []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}}}
}

func replaced(m *debug.Module) *debug.Module {
	if m.Replace != nil {
		return m.Replace
	}
	return m
}
