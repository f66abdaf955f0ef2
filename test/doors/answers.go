package doors

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Answer is that of one cell of the table.
type Answer struct {
	Client, Request string
	Status          int
	// Body is the beginning of the text of a refusal or an error, and empty for other answers.
	Body string
}

const bodyPrefix = 200

// Try sends each request as each client to the server at the address, without following redirects.
func Try(ctx context.Context, address string, clients []Client, requests []string) ([]Answer, error) {
	var answers []Answer
	for _, client := range clients {
		transport := &http.Transport{TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true, // the doors are the server's, not the client's
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if client.Certificate == nil {
					return &tls.Certificate{}, nil
				}
				return client.Certificate, nil // also one that the server will not like
			},
		}}
		for _, request := range requests {
			answer, err := try(ctx, transport, address, client, request)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", client.Name, request, err)
			}
			answers = append(answers, answer)
		}
		transport.CloseIdleConnections()
	}
	return answers, nil
}

func try(ctx context.Context, transport *http.Transport, address string, client Client, what string) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	method, path, _ := strings.Cut(what, " ")
	request, err := http.NewRequestWithContext(ctx, method, "https://"+address+path, nil)
	if err != nil {
		return Answer{}, err
	}
	if client.Token != "" {
		request.Header.Set("Authorization", "Bearer "+client.Token)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyPrefix))
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Client: client.Name, Request: what, Status: response.StatusCode}
	if answer.Status >= http.StatusMultipleChoices {
		answer.Body = string(body)
	}
	return answer, nil
}

// Write prints one answer per line.
func Write(w io.Writer, answers []Answer) error {
	for _, a := range answers {
		if _, err := fmt.Fprintf(w, "%s\t%s\t%d\t%q\n", a.Client, a.Request, a.Status, a.Body); err != nil {
			return err
		}
	}
	return nil
}

// Read is the reverse of Write. Lines that begin with # are comments.
func Read(text string) ([]Answer, error) {
	var answers []Answer
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 {
			return nil, fmt.Errorf("doors: %q: want 4 fields", line)
		}
		status, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, fmt.Errorf("doors: %q: %w", line, err)
		}
		body, err := strconv.Unquote(fields[3])
		if err != nil {
			return nil, fmt.Errorf("doors: %q: %w", line, err)
		}
		answers = append(answers, Answer{fields[0], fields[1], status, body})
	}
	return answers, nil
}
