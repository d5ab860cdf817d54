package main

import (
	"embed"
	"encoding/csv"
	"fmt"
	"strconv"
)

// The data files are written by ./generate and kept in the repository.
//
//go:generate go run ./generate
//go:embed accounts.csv orders.csv
var files embed.FS

// operation names one grant, for ever: whatever is sent, delivered or run again, an operation counts once. It is the
// key of the message and the key of the receipt.
type operation struct {
	Account string `json:"account"`
	Order   string `json:"order"`
	Kind    string `json:"kind"`
}

// The kinds of grant that an order may carry. They are different operations.
const (
	purchase = "purchase"
	campaign = "campaign"
)

// grant is what a message asks for: points for an account. As JSON it is the message's payload.
type grant struct {
	operation
	Points int64 `json:"points"`
}

// data is what the two files hold.
type data struct {
	opening map[string]int64 // the accounts, each with its opening balance
	orders  int
	grants  []grant // in the order of the file
}

// readData reads the accounts, and the first orders of the file.
func readData(orders int) (data, error) {
	d := data{opening: make(map[string]int64)}
	accounts, err := readRecords("accounts.csv")
	if err != nil {
		return data{}, err
	}
	for _, record := range accounts {
		if d.opening[record[0]], err = strconv.ParseInt(record[1], 10, 64); err != nil {
			return data{}, fmt.Errorf("accounts.csv: account %s: %w", record[0], err)
		}
	}
	records, err := readRecords("orders.csv")
	if err != nil {
		return data{}, err
	}
	for _, record := range records[:min(orders, len(records))] {
		d.orders++
		for i, kind := range []string{purchase, campaign} {
			text := record[2+i]
			if text == "" {
				continue
			}
			points, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return data{}, fmt.Errorf("orders.csv: order %s: %w", record[1], err)
			}
			d.grants = append(d.grants, grant{operation{Account: record[0], Order: record[1], Kind: kind}, points})
		}
	}
	return d, nil
}

// readRecords reads a file without its header and its comments.
func readRecords(name string) ([][]string, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	records, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return records[1:], nil
}
