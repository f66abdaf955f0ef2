package oracle

import "slices"

// Shrink returns the shortest program that it finds for which fails still holds: steps go
// first, in ever smaller groups, then single words of steps.
func Shrink(program Program, fails func(Program) bool) Program {
	for {
		before := program.String()
		program = shrinkSteps(program, fails)
		program = shrinkWords(program, fails)
		if program.String() == before {
			return program
		}
	}
}

func shrinkSteps(program Program, fails func(Program) bool) Program {
	for size := (len(program) + 1) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(program); {
			if shorter := slices.Delete(slices.Clone(program), i, i+size); fails(shorter) {
				program = shorter
			} else {
				i++
			}
		}
	}
	return program
}

func shrinkWords(program Program, fails func(Program) bool) Program {
	for i := range program {
		for j := 0; j < len(program[i].Args); {
			shorter := slices.Clone(program)
			shorter[i].Args = slices.Delete(slices.Clone(shorter[i].Args), j, j+1)
			if fails(shorter) {
				program = shorter
			} else {
				j++
			}
		}
	}
	return program
}
