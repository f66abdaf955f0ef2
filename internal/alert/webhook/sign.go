package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a signed request.
const (
	TimestampHeader = "Statusd-Timestamp"
	SignatureHeader = "Statusd-Signature"
)

const algorithm = "sha256="

// Sign adds the headers of a signed request.
func Sign(header http.Header, secret, body []byte, now time.Time) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	header.Set(TimestampHeader, timestamp)
	header.Set(SignatureHeader, algorithm+hex.EncodeToString(sum(secret, timestamp, body)))
}

// The errors of [Verify].
var (
	ErrSignature = errors.New("webhook: the signature does not match the message")
	ErrTimestamp = errors.New("webhook: the message is too old, or from the future")
)

// Verify is for receivers: it reports whether a request was signed with the secret within the
// tolerance, for which 5 minutes is a good value.
func Verify(header http.Header, secret, body []byte, now time.Time, tolerance time.Duration) error {
	timestamp := header.Get(TimestampHeader)
	got, err := hex.DecodeString(strings.TrimPrefix(header.Get(SignatureHeader), algorithm))
	if err != nil || !hmac.Equal(got, sum(secret, timestamp, body)) {
		return ErrSignature
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return ErrTimestamp
	}
	return nil
}

// sum covers the timestamp too: a message cannot be made younger.
func sum(secret []byte, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}
