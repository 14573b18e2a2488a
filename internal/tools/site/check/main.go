// check fails if a link on a page of the documents' site leads to a file or an anchor that does not exist.
//
//	check <folder of the site>
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/net/html"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: check <folder of the site>")
		os.Exit(2)
	}
	pages, links, err := check(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%d pages, %d links\n", pages, links)
}

// page has the anchors of a page, and the targets of its links.
type page struct {
	ids   map[string]bool
	links []string
}

// check returns the number of pages and links below root, and an error for each broken link.
func check(root string) (pages, links int, err error) {
	read, err := readPages(root)
	if err != nil {
		return 0, 0, err
	}
	var problems []error
	for file, p := range read {
		for _, link := range p.links {
			if problem := follow(read, file, link); problem != nil {
				relative, _ := filepath.Rel(root, file)
				problems = append(problems, fmt.Errorf("%s: %s: %w", relative, link, problem))
			}
		}
		links += len(p.links)
	}
	return len(read), links, errors.Join(problems...)
}

// readPages reads all pages below root, by their files.
func readPages(root string) (map[string]*page, error) {
	read := map[string]*page{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".html" {
			return err
		}
		read[file], err = readPage(file)
		return err
	})
	return read, err
}

func readPage(file string) (*page, error) {
	content, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	document, err := html.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	p := &page{ids: map[string]bool{}}
	for node := range document.Descendants() {
		for _, attribute := range node.Attr {
			switch attribute.Key {
			case "id", "name":
				p.ids[attribute.Val] = true
			case "href", "src":
				p.links = append(p.links, attribute.Val)
			}
		}
	}
	return p, nil
}

// follow returns the reason why a link of a file is broken; nil for a link to another site.
func follow(pages map[string]*page, file, link string) error {
	to, err := url.Parse(link)
	if err != nil {
		return err
	}
	if to.Scheme != "" || to.Host != "" {
		return nil
	}
	target := file
	if to.Path != "" {
		target = filepath.Join(filepath.Dir(file), filepath.FromSlash(to.Path))
		if strings.HasSuffix(to.Path, "/") {
			target = filepath.Join(target, "index.html")
		}
	}
	if _, err := os.Stat(target); err != nil {
		return errors.New("there is no such file")
	}
	if to.Fragment == "" {
		return nil
	}
	if p := pages[target]; p == nil || !p.ids[to.Fragment] {
		return errors.New("there is no such place")
	}
	return nil
}
