// Untrusted JSON, read into nodes that point into its text.
//
// The text must outlive the nodes. Depth and the number of values are limited before memory is
// allocated. A missing node, or one of another kind than expected, reads as empty; callers check the
// values that they need. Escapes are decoded by `text`.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gputensor {

// A fault of a file, in a few words.
struct FileFault : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Json {
public:
    Json(const char* data, size_t nbytes, size_t most_values, int most_nested)
        : at(data), end(data + nbytes), most_values(most_values), most_nested(most_nested) {
        value(0);
        space();
        if (at != end) fault("text after the value");
    }

    struct Node {
        char kind;  // one of "{[s0-tfn": object, list, string, integer, other number, true ...
        uint32_t next;       // the node after this one and its contents
        const char* text;    // of a string or number
        uint32_t size;       // bytes of the text, or the number of values in an object or list
    };

    // A value, or nothing.
    class Value {
    public:
        explicit operator bool() const { return node != nullptr; }
        bool is(char kind) const { return node && node->kind == kind; }
        size_t size() const { return is('[') || is('{') ? node->size : 0; }

        // The value of a name in an object.
        Value operator[](std::string_view name) const {
            Value found;
            each([&](const std::string& key, Value one) {
                if (key == name) found = one;
            });
            return found;
        }
        // Calls visit(name, value) for all of an object; visit(value) for all of a list.
        template <class Visit> void each(Visit visit) const {
            if (!is('{')) return;
            const Node* one = node + 1;
            for (uint32_t i = 0; i < node->size; i++) {
                Value key(one, base);
                one = base + one->next;
                visit(key.text(), Value(one, base));
                one = base + one->next;
            }
        }
        template <class Visit> void items(Visit visit) const {
            if (!is('[')) return;
            const Node* one = node + 1;
            for (uint32_t i = 0; i < node->size; i++) {
                visit(Value(one, base));
                one = base + one->next;
            }
        }
        std::vector<Value> items() const {
            std::vector<Value> found;
            items([&](Value one) { found.push_back(one); });
            return found;
        }
        // The values of an object by name; FileFault for a repeated name.
        std::map<std::string, Value> table() const {
            std::map<std::string, Value> found;
            each([&](const std::string& key, Value one) {
                if (!found.emplace(key, one).second) throw FileFault("a name is repeated");
            });
            return found;
        }
        std::string text() const { return is('s') ? unescaped() : ""; }
        bool is_true() const { return is('t'); }
        // An integer from `least` to `most`; FileFault for any other value.
        int64_t integer(const char* where, int64_t least, int64_t most) const {
            if (is('0') && node->size <= 20) {
                bool minus = *node->text == '-';
                uint64_t found = 0;
                for (uint32_t i = minus; i < node->size; i++) {
                    uint64_t digit = uint64_t(node->text[i] - '0');
                    if (found > (UINT64_MAX - digit) / 10) throw FileFault(wrong(where));
                    found = found * 10 + digit;
                }
                if (found <= uint64_t(INT64_MAX)) {
                    int64_t value = minus ? -int64_t(found) : int64_t(found);
                    if (value >= least && value <= most) return value;
                }
            }
            throw FileFault(wrong(where));
        }

        Value() = default;
        Value(const Node* node, const Node* base) : node(node), base(base) {}

    private:
        static std::string wrong(const char* where) {
            return std::string(where) + ": expected an integer within its limits";
        }
        std::string unescaped() const {
            std::string found;
            for (const char *at = node->text, *last = at + node->size; at < last; at++) {
                if (*at != '\\') {
                    found += *at;
                    continue;
                }
                static const char names[] = "\"\\/bfnrt", signs[] = "\"\\/\b\f\n\r\t";
                if (const char* name = strchr(names, *++at)) found += signs[name - names];
                else {
                    uint32_t code = hex(at + 1);
                    at += 4;
                    if (code >= 0xd800 && code < 0xdc00 && last - at > 6 && at[1] == '\\') {
                        code = 0x10000 + ((code - 0xd800) << 10) + (hex(at + 3) - 0xdc00);
                        at += 6;
                    }
                    add(found, code);
                }
            }
            return found;
        }
        static uint32_t hex(const char* digits) {
            uint32_t code = 0;
            for (int i = 0; i < 4; i++) {
                char c = digits[i];
                code = code * 16 + uint32_t(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
            }
            return code;
        }
        static void add(std::string& out, uint32_t code) {
            if (code < 0x80) {
                out += char(code);
            } else if (code < 0x800) {
                out += {char(0xc0 | code >> 6), char(0x80 | (code & 63))};
            } else if (code < 0x10000) {
                out += {char(0xe0 | code >> 12), char(0x80 | (code >> 6 & 63)),
                        char(0x80 | (code & 63))};
            } else {
                out += {char(0xf0 | (code >> 18 & 7)), char(0x80 | (code >> 12 & 63)),
                        char(0x80 | (code >> 6 & 63)), char(0x80 | (code & 63))};
            }
        }

        const Node *node = nullptr, *base = nullptr;
    };

    Value root() const { return Value(nodes.data(), nodes.data()); }

private:
    [[noreturn]] static void fault(const char* text) { throw FileFault(std::string("JSON: ") + text); }

    void space() {
        while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
    }
    char peek() {
        space();
        return at < end ? *at : 0;
    }
    size_t add(char kind) {
        if (nodes.size() >= most_values) fault("too many values");
        nodes.push_back({kind, 0, at, 0});
        return nodes.size() - 1;
    }

    void value(int depth) {
        char first = peek();
        size_t number = 0;
        if (first == '{' || first == '[') number = group(first, depth);
        else if (first == '"') number = string();
        else if (first == '-' || (first >= '0' && first <= '9')) number = numeral();
        else number = word();
        nodes[number].next = uint32_t(nodes.size());
    }

    size_t group(char open, int depth) {
        if (depth >= most_nested) fault("nested too deep");
        char close = open == '{' ? '}' : ']';
        size_t number = add(open);
        at++;
        uint32_t count = 0;
        for (bool is_first = true; peek() != close; is_first = false, count++) {
            if (!is_first) {
                if (peek() != ',') fault("expected a comma");
                at++;
            }
            if (open == '{') {
                if (peek() != '"') fault("expected a name");
                size_t name = string();
                nodes[name].next = uint32_t(nodes.size());
                if (peek() != ':') fault("expected a colon");
                at++;
            }
            value(depth + 1);
        }
        at++;
        nodes[number].size = count;
        return number;
    }

    size_t string() {
        size_t number = add('s');
        const char* first = ++at;
        for (; at < end && *at != '"'; at++) {
            if (uint8_t(*at) < 0x20) fault("a control character in a string");
            if (*at != '\\') continue;
            at++;
            if (at == end || !*at || !strchr("\"\\/bfnrtu", *at)) fault("an unknown escape");
            if (*at != 'u') continue;
            if (end - at < 5) fault("an escape that ends too soon");
            for (int i = 1; i <= 4; i++)
                if (!isxdigit(static_cast<unsigned char>(at[i]))) fault("an unknown escape");
            at += 4;
        }
        if (at >= end) fault("a string that does not end");
        if (size_t(at - first) > UINT32_MAX) fault("a string that is too long");
        nodes[number].text = first;
        nodes[number].size = uint32_t(at - first);
        at++;
        return number;
    }

    size_t numeral() {
        size_t number = add('0');
        const char* first = at;
        if (*at == '-') at++;
        if (at == end || *at < '0' || *at > '9') fault("a minus without a number");
        while (at < end && strchr("0123456789", *at) && *at) at++;
        if (at < end && *at && strchr(".eE", *at)) {
            nodes[number].kind = '-';
            while (at < end && *at && strchr("0123456789.eE+-", *at)) at++;
        }
        nodes[number].text = first;
        nodes[number].size = uint32_t(at - first);
        return number;
    }

    size_t word() {
        for (const char* one : {"true", "false", "null"}) {
            size_t length = strlen(one);
            if (size_t(end - at) < length || memcmp(at, one, length)) continue;
            size_t number = add(*one);
            at += length;
            return number;
        }
        fault("expected a value");
    }

    const char *at, *const end;
    const size_t most_values;
    const int most_nested;
    std::vector<Node> nodes;
};

}  // namespace gputensor
