package main

// pair is a state of one life beside a state of the other. Either can be missing, not both.
type pair struct{ kubelet, statusd *moment }

// same reports whether both lives have exactly this state.
func (p pair) same() bool {
	return p.kubelet != nil && p.statusd != nil && p.kubelet.state.equal(p.statusd.state)
}

// Weights of aligning two states. Equal states count so much more than similar ones that no number
// of similar ones outweighs one equal pair, as long as lives are shorter than that.
const (
	worthEqual = 1000
	worthAlike = 1 // kubectl prints the same, details differ
)

func worth(a, b state) int {
	switch {
	case a.equal(b):
		return worthEqual
	case a.headline == b.headline:
		return worthAlike
	}
	return 0
}

// align sets two lives side by side, in order, so that as many states as possible stand
// beside their equals. States that differ in what kubectl prints never share a pair.
func align(kubelet, statusd recording) []pair {
	// best[i][j] is the worth of the best alignment of kubelet[i:] and statusd[j:].
	best := make([][]int, len(kubelet)+1)
	for i := range best {
		best[i] = make([]int, len(statusd)+1)
	}
	for i := len(kubelet) - 1; i >= 0; i-- {
		for j := len(statusd) - 1; j >= 0; j-- {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if w := worth(kubelet[i].state, statusd[j].state); w > 0 {
				best[i][j] = max(best[i][j], w+best[i+1][j+1])
			}
		}
	}
	var pairs []pair
	i, j := 0, 0
	for i < len(kubelet) || j < len(statusd) {
		switch {
		case i < len(kubelet) && j < len(statusd) && together(best, i, j, worth(kubelet[i].state, statusd[j].state)):
			pairs = append(pairs, pair{&kubelet[i], &statusd[j]})
			i, j = i+1, j+1
		case i < len(kubelet) && best[i][j] == best[i+1][j]:
			pairs = append(pairs, pair{kubelet: &kubelet[i]})
			i++
		default:
			pairs = append(pairs, pair{statusd: &statusd[j]})
			j++
		}
	}
	return pairs
}

// together reports whether the best alignment from here on begins with a pair.
func together(best [][]int, i, j, w int) bool {
	return w > 0 && best[i][j] == w+best[i+1][j+1]
}
