package endpoint

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/statusd/statusd/internal/alert/deliver"
)

// Options configure the connection to a receiver. URL is required.
type Options struct {
	// URL is where the receiver is, http or https.
	URL string `yaml:"url"`
	// Timeout bounds one request; 10 s if 0.
	Timeout time.Duration `yaml:"timeout,omitempty"`
	// CAFile has the authorities of the receiver's certificate, in place of the system's.
	CAFile string `yaml:"caFile,omitempty"`
	// CertFile and KeyFile are the client certificate.
	CertFile string `yaml:"certFile,omitempty"`
	KeyFile  string `yaml:"keyFile,omitempty"`
	// ServerName is the name in the receiver's certificate if it differs from the host of the URL.
	ServerName string `yaml:"serverName,omitempty"`
	// Username and PasswordFile are for basic authentication, BearerTokenFile is for a token.
	Username        string `yaml:"username,omitempty"`
	PasswordFile    string `yaml:"passwordFile,omitempty"`
	BearerTokenFile string `yaml:"bearerTokenFile,omitempty"`
}

// Files returns the paths among the options, so that relative ones can be resolved.
func (o *Options) Files() []*string {
	return []*string{&o.CAFile, &o.CertFile, &o.KeyFile, &o.PasswordFile, &o.BearerTokenFile}
}

// Validate returns the problems of the values. Validate reads no file.
func (o *Options) Validate() error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	switch u, err := url.Parse(o.URL); {
	case err != nil:
		wrong("url: %w", err)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		wrong("url: %q: want http://HOST or https://HOST", o.URL)
	case u.User != nil:
		wrong("url: has credentials in it; use username and passwordFile")
	case u.RawQuery != "" || u.Fragment != "":
		wrong("url: %q: want no query and no fragment", o.URL)
	case u.Scheme == "http" && (o.CAFile != "" || o.CertFile != "" || o.ServerName != ""):
		wrong("caFile, certFile and serverName are for https, and the url is %q", o.URL)
	}
	if o.Timeout < 0 {
		wrong("timeout: %v: want a time above zero, such as 10s", o.Timeout)
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		wrong("certFile and keyFile: want both or none")
	}
	if (o.Username == "") != (o.PasswordFile == "") {
		wrong("username and passwordFile: want both or none")
	}
	if o.Username != "" && o.BearerTokenFile != "" {
		wrong("username and bearerTokenFile: want one")
	}
	return errors.Join(problems...)
}

const (
	defaultTimeout = 10 * time.Second
	// maxAnswer is how much of an answer is read.
	maxAnswer = 64 << 10
	// maxSecret bounds the files with a password or token.
	maxSecret = 64 << 10
	// maxShown is how much of an answer an error shows.
	maxShown = 200
)

// Endpoint posts to one receiver. Its methods may be called from any goroutine.
type Endpoint struct {
	options Options
	target  *url.URL

	mu     sync.Mutex // guards what follows
	client *http.Client
	ca     os.FileInfo // of CAFile when client was made
}

// New makes an endpoint and reads its files once to check them. It opens no connection.
func New(options Options) (*Endpoint, error) {
	if err := options.Validate(); err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	if options.Timeout == 0 {
		options.Timeout = defaultTimeout
	}
	target, err := url.Parse(options.URL)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	e := &Endpoint{options: options, target: target}
	if _, err := e.connections(); err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	if options.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(options.CertFile, options.KeyFile); err != nil {
			return nil, fmt.Errorf("endpoint: certificate: %w", err)
		}
	}
	if err := e.authorize(&http.Request{Header: http.Header{}}); err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	return e, nil
}

// Name is the host, port and path of the receiver.
func (e *Endpoint) Name() string { return e.target.Host + strings.TrimRight(e.target.Path, "/") }

// Timeout bounds one request.
func (e *Endpoint) Timeout() time.Duration { return e.options.Timeout }

// Close closes idle connections.
func (e *Endpoint) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.client != nil {
		e.client.CloseIdleConnections()
	}
}

// Post sends JSON to a path below the URL and returns the beginning of the answer. An error of type
// [deliver.RefusedError] means that the receiver refuses this body; after any other error the request
// may be tried again.
func (e *Endpoint) Post(ctx context.Context, path string, header http.Header, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.target.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "statusd")
	if err := e.authorize(request); err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	client, err := e.connections()
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if failure := judge(response, answer, time.Now()); failure != nil {
		return answer, failure
	}
	if err != nil {
		return nil, fmt.Errorf("endpoint: read the answer: %w", err)
	}
	return answer, nil
}

// judge makes an error of an answer that is no success.
func judge(response *http.Response, answer []byte, now time.Time) error {
	code := response.StatusCode
	if code >= 200 && code < 300 {
		return nil
	}
	err := fmt.Errorf("endpoint: answer %d: %s", code, shown(answer))
	switch code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return &deliver.RefusedError{Err: err} // about the body: it will not be better next time
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if pause := retryAfter(response.Header.Get("Retry-After"), now); pause > 0 {
			return &deliver.WaitError{Err: err, For: pause}
		}
	}
	if code >= 300 && code < 400 {
		return fmt.Errorf("endpoint: answer %d: redirects are not followed; name the address that it redirects to", code)
	}
	return err // about the receiver or the credentials; an operator can repair both
}

// retryAfter reads seconds or a date.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(max(seconds, 0), 3600)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// shown is the beginning of an answer on one line.
func shown(answer []byte) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(answer[:min(len(answer), maxShown)]), " "))
	if text = strings.TrimSpace(text); text == "" {
		return "without a text"
	}
	return text
}

// authorize adds the credentials, as they are in their files now.
func (e *Endpoint) authorize(request *http.Request) error {
	switch {
	case e.options.BearerTokenFile != "":
		token, err := Secret(e.options.BearerTokenFile)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+token)
	case e.options.Username != "":
		password, err := Secret(e.options.PasswordFile)
		if err != nil {
			return err
		}
		request.SetBasicAuth(e.options.Username, password)
	}
	return nil
}

// Secret is the text of a file, without the spaces around it.
func Secret(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxSecret))
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(content))
	if text == "" || strings.ContainsFunc(text, unicode.IsControl) {
		return "", fmt.Errorf("%s: want one line of text", filepath.Base(path))
	}
	return text, nil
}

// connections returns the client, a new one if the authorities have changed.
func (e *Endpoint) connections() (*http.Client, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var ca os.FileInfo
	if e.options.CAFile != "" {
		var err error
		if ca, err = os.Stat(e.options.CAFile); err != nil {
			return nil, err
		}
		if e.client != nil && e.ca != nil && ca.ModTime().Equal(e.ca.ModTime()) && ca.Size() == e.ca.Size() && os.SameFile(ca, e.ca) {
			return e.client, nil
		}
	} else if e.client != nil {
		return e.client, nil
	}
	config, err := e.tlsConfig()
	if err != nil {
		return nil, err
	}
	if e.client != nil {
		e.client.CloseIdleConnections()
	}
	e.ca = ca
	e.client = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: e.options.Timeout}).DialContext,
			TLSClientConfig:        config,
			TLSHandshakeTimeout:    e.options.Timeout,
			MaxIdleConns:           1,
			MaxConnsPerHost:        2,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			ForceAttemptHTTP2:      true,
		},
	}
	return e.client, nil
}

func (e *Endpoint) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: e.options.ServerName}
	if e.options.CAFile != "" {
		content, err := os.ReadFile(e.options.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("%s: has no certificate", e.options.CAFile)
		}
	}
	if e.options.CertFile != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(e.options.CertFile, e.options.KeyFile) // it may have been renewed
			return &pair, err
		}
	}
	return config, nil
}
