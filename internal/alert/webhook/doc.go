// Package webhook is the output of rules to any HTTP receiver: signed JSON by a documented schema.
//
// The body is a [Message]; [Schema] describes it. With a secret, the request has the headers
//
//	Statusd-Timestamp: 1793534400
//	Statusd-Signature: sha256=HEX
//
// where HEX is the HMAC-SHA256 of the timestamp, a dot and the body. A receiver that checks the
// signature and refuses old timestamps accepts neither forged nor old messages; a message replayed
// within the tolerance has the ID of an earlier message. [Verify] checks signature and timestamp.
//
// An alert arrives at least once, and its newest state last. A receiver answers 2xx to accept a message,
// 400, 413 or 422 to refuse it for good, and any other code to have it sent again.
package webhook
