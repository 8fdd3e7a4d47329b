#include "warpcheck/parse/lexer.h"

#include <bit>
#include <charconv>

namespace warpcheck {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_follow(char c) { return is_digit(c) || is_alpha(c) || c == '_' || c == '$'; }
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    std::vector<Token> out;
    out.reserve(text_.size() / 5 + 1);
    while (true) {
      skip_blank();
      const std::size_t begin = at_;
      if (begin >= text_.size()) break;
      Token token;
      token.kind = scan(token.punct);
      token.span = {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at_ - begin)};
      out.push_back(token);
    }
    out.push_back({TokenKind::kEnd, 0, {static_cast<std::uint32_t>(text_.size()), 0}});
    return out;
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void skip_blank() {
    while (at_ < text_.size()) {
      if (is_space(text_[at_])) {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const auto end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        break;
      }
    }
  }

  void skip_word() {
    while (is_follow(peek())) ++at_;
  }

  TokenKind scan(char& punct) {
    const char c = peek();
    if (c == '.' && is_follow(peek(1))) return scan_dotted();
    if (is_digit(c)) return scan_number();
    if (c == '"') return scan_string();
    if (is_alpha(c) || c == '_' || c == '$' || c == '%') {
      ++at_;
      skip_word();
      // '%' alone is the remainder operator.
      if (c == '%' && text_[at_ - 1] == '%') {
        punct = c;
        return TokenKind::kPunct;
      }
      return TokenKind::kIdent;
    }
    ++at_;
    constexpr std::string_view kPuncts = "{}[]()<>,;:+-*/!@|&^~?=";
    if (kPuncts.find(c) == std::string_view::npos) return TokenKind::kBad;
    punct = c;
    return TokenKind::kPunct;
  }

  TokenKind scan_dotted() {
    ++at_;
    skip_word();
    while (peek() == ':' && peek(1) == ':' && is_follow(peek(2))) {
      at_ += 2;
      skip_word();
    }
    return TokenKind::kDotted;
  }

  TokenKind scan_number() {
    const char second = peek(1);
    if (peek() == '0' && (second == 'x' || second == 'X' || second == 'f' || second == 'F' ||
                          second == 'd' || second == 'D' || second == 'b' || second == 'B')) {
      skip_word();
      return TokenKind::kNumber;
    }
    while (is_digit(peek())) ++at_;
    if (peek() == '.') {
      ++at_;
      while (is_digit(peek())) ++at_;
    }
    if ((peek() == 'e' || peek() == 'E') &&
        (is_digit(peek(1)) || ((peek(1) == '-' || peek(1) == '+') && is_digit(peek(2))))) {
      at_ += 2;
      while (is_digit(peek())) ++at_;
    }
    skip_word();  // a suffix: U is legal, others are diagnosed by read_number
    return TokenKind::kNumber;
  }

  TokenKind scan_string() {
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
      at_ += text_[at_] == '\\' && at_ + 1 < text_.size() ? 2 : 1;
    }
    if (peek() != '"') return TokenKind::kBad;
    ++at_;
    return TokenKind::kString;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

bool read_digits(std::string_view text, int base, std::uint64_t& value) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc() && rest == end && !text.empty();
}

}  // namespace

std::vector<Token> tokenize(std::string_view text) { return Lexer(text).run(); }

bool read_number(std::string_view text, Constant& out) {
  out = {};
  if (text.size() > 2 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    if (mark == 'f' || mark == 'd') {
      out.kind = mark == 'f' ? Constant::Kind::kF32 : Constant::Kind::kF64;
      const std::size_t digits = mark == 'f' ? 8 : 16;
      return text.size() == digits + 2 && read_digits(text.substr(2), 16, out.bits);
    }
  }
  if (text.find_first_of(".") != std::string_view::npos ||
      (text.find_first_of("eE") != std::string_view::npos && !text.starts_with("0x") &&
       !text.starts_with("0X"))) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    out.kind = Constant::Kind::kF64;
    out.bits = std::bit_cast<std::uint64_t>(value);
    return rest == end && error == std::errc();
  }
  if (text.ends_with('U')) text.remove_suffix(1);
  if (text.starts_with("0x") || text.starts_with("0X")) {
    return read_digits(text.substr(2), 16, out.bits);
  }
  if (text.starts_with("0b") || text.starts_with("0B")) {
    return read_digits(text.substr(2), 2, out.bits);
  }
  if (text.size() > 1 && text[0] == '0') return read_digits(text.substr(1), 8, out.bits);
  return read_digits(text, 10, out.bits);
}

}  // namespace warpcheck
