package podstatus

import (
	"math"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
)

// maxMessageBytes is what all termination messages of a pod may take together.
const maxMessageBytes = 12288

// messageLimit is the share of one container in the pod's budget for termination
// messages (N2). It counts the containers of the spec, not those that have a status.
func messageLimit(pod *v1.Pod) int {
	containers := len(pod.Spec.Containers) + len(pod.Spec.InitContainers) + len(pod.Spec.EphemeralContainers)
	return maxMessageBytes / max(containers, 1)
}

// cutText shortens a valid text to at most limit bytes without splitting a rune (N3): half
// a rune comes back from the API as U+FFFD, and the two texts would differ for ever.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// validText replaces each byte that is not part of a rune by U+FFFD, as encoding to JSON does.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// sameText says whether raw would be normalised to clean, without building that text.
func sameText(clean, raw string) bool {
	return sameCutText(clean, raw, math.MaxInt)
}

// sameCutText is sameText for a message that normalising also cuts to limit bytes.
func sameCutText(clean, raw string, limit int) bool {
	if len(raw) <= limit && clean == raw {
		return true
	}
	if utf8.ValidString(raw) {
		return clean == cutText(raw, limit)
	}
	n := 0
	for _, r := range raw { // yields U+FFFD for each stray byte, as validText does
		width := utf8.RuneLen(r)
		if n+width > limit {
			break
		}
		if got, size := utf8.DecodeRuneInString(clean[n:]); got != r || size != width {
			return false
		}
		n += width
	}
	return n == len(clean)
}
