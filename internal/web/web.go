package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:embed page
var files embed.FS

// policy lets the page load its own files and ask its own server, and forbids the rest: code
// and styles in attributes, frames around it, and strings that become HTML or code.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// A file is the content served under one path.
type file struct {
	name    string
	content []byte
	tag     string
}

// Handler serves the page at "/" and its files beside it. Handler may be called from any goroutine.
func Handler() http.Handler {
	served, err := load(files)
	if err != nil {
		panic("web: the embedded files cannot be read: " + err.Error()) // the binary itself is broken
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the page is read with GET or HEAD")
			return
		}
		found, ok := served[r.URL.Path]
		if !ok {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the path is not served; /openapi.json lists the paths of the query API")
			return
		}
		found.serve(w, r)
	})
}

// refuse answers with a Status object, as the query API beside the page does.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{ // fails only if the reader has gone away
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}

// load reads the files and the checksum of each, by its served path.
func load(files fs.FS) (map[string]file, error) {
	served := map[string]file{}
	err := fs.WalkDir(files, "page", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		found := file{name: path.Base(name), content: content, tag: `"` + hex.EncodeToString(sum[:16]) + `"`}
		served[strings.TrimPrefix(name, "page")] = found
		if name == "page/index.html" {
			served["/"] = found
		}
		return nil
	})
	return served, err
}

// serve answers with the file, or with 304 if the browser has it. The browser asks each time:
// after an upgrade of statusd no file of the older page may be mixed with the newer ones.
func (f file) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", contentType(f.name))
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", f.tag)
	http.ServeContent(w, r, f.name, time.Time{}, bytes.NewReader(f.content))
}

// contentType does not depend on the MIME tables of the machine for what the page consists of.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return mime.TypeByExtension(path.Ext(name))
	}
}
