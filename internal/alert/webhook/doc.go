// Package webhook is the output of rules to any HTTP receiver: JSON by a documented schema, signed.
//
// The body is a [Message]; [Schema] describes it. If there is a secret, the request has the headers
//
//	Statusd-Timestamp: 1793534400
//	Statusd-Signature: sha256=HEX
//
// where HEX is the HMAC-SHA256 of the timestamp, a dot and the body. A receiver that checks the
// signature and refuses old timestamps cannot be fed by others, nor with an old message; what is
// replayed within the tolerance has the ID of a message that it has seen. [Verify] does the first two.
//
// An alert arrives at least once, and its newest state last. A receiver answers 2xx to take a message, 400,
// 413 or 422 to refuse it for good, and anything else to have it sent again.
package webhook
