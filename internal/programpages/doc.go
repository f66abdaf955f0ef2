// Package programpages keeps pages of the program that it no longer uses out of the memory of the process.
//
// The kernel maps pages of a program's file as they are used, each with its neighbors, and leaves them mapped until the machine runs out of memory. Of a large
// program nearly all pages are mapped once it has started, and count as its resident memory, though it goes on with a few. [Keep] unmaps them from time
// to time. Those in use are mapped again at once: the file's pages stay in the page cache, so that nothing is read from a disk.
package programpages
