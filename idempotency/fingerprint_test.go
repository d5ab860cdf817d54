package idempotency_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/idempotency"
)

// F25: the values were made with another program (Python's hashlib), so that they
// also tell a stored fingerprint of an older release from a changed algorithm.
func TestFingerprintJSONGoldenValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"canonical", `{"amount":1200,"currency":"chf"}`, "528bba740e962dd4b49f5e9a0a6754d4130564ea69843722fc243343c62ee292"},
		{"order of members", `{"currency":"chf","amount":1200}`, "528bba740e962dd4b49f5e9a0a6754d4130564ea69843722fc243343c62ee292"},
		{"white space", " {\n\t\"amount\" : 1200 , \"currency\": \"chf\"\r\n} ", "528bba740e962dd4b49f5e9a0a6754d4130564ea69843722fc243343c62ee292"},
		{"escapes", `{"\u0061mount":1200,"currency":"c\u0068f"}`, "528bba740e962dd4b49f5e9a0a6754d4130564ea69843722fc243343c62ee292"},
		{"beyond 2^53", `{"n":9007199254740993}`, "4ac8309cc76123ef6c5325ef925fc873e9b5856ec4f844ef1462f9303960378a"},
		{"2^53", `{"n":9007199254740992}`, "66c87d9cb3014e05a11baa97df62282d89d425f22ee15816577c84534e2ef1bb"},
		{"1", `{"n":1}`, "2bfd14f43d17fc7cea24e0917a8879b4b2f880b8baeec1b9d90fbaad655e71bd"},
		{"1.0", `{"n":1.0}`, "3b6b06ecd1c968c8e738e0f11c4bb361fca80a9a694de22fe66a05286afbd081"},
		{"1e0", `{"n":1e0}`, "1499d8ce7727c52f249d9b8cd88eae2162f228881be4d8e91720e482848b5153"},
		{"null", `{"a":null}`, "d091f9c83c091f79652fe8786375b3fe4ce0861a56f5bfbafedbe431877ff0e8"},
		{"absent", `{}`, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},
		{"list", `[1, 2]`, "49a64717d5d4cb19952e6eac2946415cf6879adacf9908e7d872332d32c6e684"},
		{"composed accent", "{\"name\":\"\u00e9\"}", "2f16b8477146a1b2ba7d6bb7cf7c9979c191cc2838a107dbf5f0d920b4cb3ba1"},
		{"decomposed accent", "{\"name\":\"e\u0301\"}", "6a547588c4055916e090ed61467326046dd52810679d03bfb84d862a7123522e"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := []byte(c.text)
			got, err := idempotency.FingerprintJSON(text)
			require.NoError(t, err)
			require.Equal(t, c.want, got.String())
			require.Equal(t, c.text, string(text), "the caller's bytes were changed")
		})
	}
}

func TestFingerprintJSONTellsRequestsApart(t *testing.T) {
	t.Parallel()
	seen := map[idempotency.Fingerprint]string{}
	for _, text := range []string{
		`[1,2]`, `[2,1]`, `{"a":null}`, `{}`, `{"a":""}`, `{"a":0}`, `{"a":-0}`, `{"a":false}`, `null`,
		`1`, `1.0`, `1e0`, `10e-1`, `9007199254740993`, `9007199254740992`, `"1"`,
		"\"\u00e9\"", "\"e\u0301\"", `{"limit":10}`, `{"A":null}`,
	} {
		fp, err := idempotency.FingerprintJSON([]byte(text))
		require.NoError(t, err, text)
		require.Empty(t, seen[fp], "%s has the fingerprint of %s", text, seen[fp])
		seen[fp] = text
	}
}

func TestFingerprintJSONRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a repeated member":             `{"amount":1,"amount":1}`,
		"a repeated member, escaped":    `{"amount":1,"\u0061mount":2}`,
		"a repeated member, further in": `[{"x":{"a":1,"b":2,"a":3}}]`,
		"what is not JSON":              `{"amount":}`,
		"two values":                    `{} {}`,
		"bytes that are not UTF-8":      "\"\xff\"",
		"nothing":                       ``,
		"a lone surrogate in an escape": `"\ud800"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := idempotency.FingerprintJSON([]byte(text))
			require.ErrorIs(t, err, idempotency.ErrInvalid)
		})
	}
}

func TestFingerprintBytesIsByteForByte(t *testing.T) {
	t.Parallel()
	require.Equal(t, "88a0a19a54de7530a437ce735fee7853995b7a5efb7a51337d4317a49d3553c3",
		idempotency.FingerprintBytes([]byte("\x00\xff opaque")).String())
	require.Equal(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		idempotency.FingerprintBytes(nil).String())
	require.NotEqual(t, idempotency.FingerprintBytes([]byte(`{"a":1}`)), idempotency.FingerprintBytes([]byte(`{"a": 1}`)))
}

func TestFingerprintOfHashesTheDecodedValue(t *testing.T) {
	t.Parallel()
	type charge struct {
		Currency string `json:"currency"`
		Amount   int64  `json:"amount"`
	}
	fp, err := idempotency.FingerprintOf(charge{Currency: "chf", Amount: 1200})
	require.NoError(t, err)
	require.Equal(t, "528bba740e962dd4b49f5e9a0a6754d4130564ea69843722fc243343c62ee292", fp.String())

	big, err := idempotency.FingerprintOf(charge{Amount: 9007199254740993})
	require.NoError(t, err)
	less, err := idempotency.FingerprintOf(charge{Amount: 9007199254740992})
	require.NoError(t, err)
	require.NotEqual(t, big, less)

	_, err = idempotency.FingerprintOf(make(chan int))
	require.ErrorIs(t, err, idempotency.ErrInvalid)
}

func TestFingerprintWithKeepsPartsApart(t *testing.T) {
	t.Parallel()
	fp, err := idempotency.FingerprintJSON([]byte(`{}`))
	require.NoError(t, err)
	require.Equal(t, "b54541284b4867c18d56d7a977667d717f65fc6c7ef7755850b741e363ffd5d3", fp.With("POST", "/rides").String())

	seen := map[idempotency.Fingerprint]bool{fp: true}
	for _, parts := range [][]string{{}, {""}, {"POST", "/rides"}, {"POST/", "rides"}, {"POST/rides"}, {"/rides", "POST"}, {"POST", "/rides", ""}} {
		with := fp.With(parts...)
		require.False(t, seen[with], "%q", parts)
		seen[with] = true
	}
}
