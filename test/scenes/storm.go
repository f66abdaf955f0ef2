package scenes

import (
	"math/rand/v2"
	"slices"

	"github.com/statusd/statusd/internal/audit"
)

// Storm draws the lies of a round, which is the same for the same seed and round: each lie of the list comes once before one comes again. A fault
// that is no lie and a foreign writer come together, since neither explains the other; other lies come alone.
func Storm(seed uint64, round int, all []Lie) []Lie {
	var alone, quiet, foreign []Lie
	for _, lie := range all {
		switch {
		case lie.Expect == "" && lie.Silent == "" && !lie.Halts && !lie.Spared:
			quiet = append(quiet, lie)
		case lie.Expect == audit.ForeignWriter && lie.Again != nil && !lie.Halts:
			foreign = append(foreign, lie)
		default:
			alone = append(alone, lie)
		}
	}
	// draw takes the next lie of a kind, in an order that changes when all have come.
	draw := func(of []Lie, kind, turn int) []Lie {
		if len(of) == 0 {
			return nil
		}
		order := rand.New(rand.NewPCG(seed, uint64(kind)<<32|uint64(turn/len(of)))).Perm(len(of))
		return of[order[turn%len(of)]:][:1]
	}
	if len(alone) > 0 && (round%2 == 1 || len(quiet)+len(foreign) == 0) {
		turn := round
		if len(quiet)+len(foreign) > 0 {
			turn = round / 2
		}
		return draw(alone, 1, turn)
	}
	turn := round
	if len(alone) > 0 {
		turn = round / 2
	}
	return slices.Concat(draw(quiet, 2, turn), draw(foreign, 3, turn))
}
