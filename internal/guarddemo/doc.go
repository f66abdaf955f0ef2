// Command guarddemo shows the guard at work: statusd observe runs a stock kubelet as its child, something breaks, and the
// condition of the Node, its Events, the page and statusd guard say so. It prints what was expected and what was
// seen, after how many seconds. make guard-demo runs it.
package main
