package report

func Markdown(run *Run) string { return "" }

type chart struct{ file, svg string }

func charts(run *Run) []chart { return nil }
