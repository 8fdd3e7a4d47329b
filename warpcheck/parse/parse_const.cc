// Constant expressions by precedence climbing; integers are 64-bit, floats are double.
#include <bit>
#include <cmath>

#include "warpcheck/parse/parser_impl.h"

namespace warpcheck {
namespace {

double as_double(const Constant& c) {
  switch (c.kind) {
    case Constant::Kind::kF32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(c.bits));
    case Constant::Kind::kF64:
      return std::bit_cast<double>(c.bits);
    default:
      return static_cast<double>(static_cast<std::int64_t>(c.bits));
  }
}

Constant integer(std::uint64_t bits) { return {Constant::Kind::kInt, bits}; }

struct Operator {
  std::string_view word;
  int precedence;
};

constexpr Operator kOperators[] = {{"||", 1}, {"&&", 2}, {"<<", 8}, {">>", 8}, {"==", 6},
                                   {"!=", 6}, {"<=", 7}, {">=", 7}, {"|", 3},  {"^", 4},
                                   {"&", 5},  {"<", 7},  {">", 7},  {"+", 9},  {"-", 9},
                                   {"*", 10}, {"/", 10}, {"%", 10}};

/// False for a division by zero or an operator floats lack.
bool apply_float(std::string_view op, double a, double b, Constant& out) {
  double value = 0;
  if (op == "+")
    value = a + b;
  else if (op == "-")
    value = a - b;
  else if (op == "*")
    value = a * b;
  else if (op == "/")
    value = a / b;
  else
    return false;
  out = {Constant::Kind::kF64, std::bit_cast<std::uint64_t>(value)};
  return true;
}

bool apply_int(std::string_view op, std::uint64_t a, std::uint64_t b, Constant& out) {
  const auto sa = static_cast<std::int64_t>(a);
  const auto sb = static_cast<std::int64_t>(b);
  std::uint64_t v = 0;
  if (op == "+")
    v = a + b;
  else if (op == "-")
    v = a - b;
  else if (op == "*")
    v = a * b;
  else if (op == "<<")
    v = b < 64 ? a << b : 0;
  else if (op == ">>")
    v = static_cast<std::uint64_t>(sa >> (b < 64 ? b : 63));
  else if (op == "|")
    v = a | b;
  else if (op == "&")
    v = a & b;
  else if (op == "^")
    v = a ^ b;
  else if (op == "||")
    v = a || b;
  else if (op == "&&")
    v = a && b;
  else if (op == "==")
    v = a == b;
  else if (op == "!=")
    v = a != b;
  else if (op == "<")
    v = sa < sb;
  else if (op == ">")
    v = sa > sb;
  else if (op == "<=")
    v = sa <= sb;
  else if (op == ">=")
    v = sa >= sb;
  else if (b == 0)
    return false;
  else if (sb == -1)
    v = op == "/" ? 0 - a : 0;  // INT64_MIN / -1 wraps
  else
    v = static_cast<std::uint64_t>(op == "/" ? sa / sb : sa % sb);
  out = integer(v);
  return true;
}

}  // namespace

bool Parser::constant(Constant& out, int min_precedence, int depth) {
  if (depth > limits_.max_depth) return fail("expression nested too deeply");
  if (!constant_unary(out, depth)) return false;
  while (peek().kind == TokenKind::kPunct) {
    const Operator* found = nullptr;
    const std::string_view rest = source_->text().substr(peek().span.offset, 2);
    for (const Operator& each : kOperators) {
      if (!found && rest.starts_with(each.word)) found = &each;
    }
    if (!found || found->precedence <= min_precedence) return true;
    const Span where = peek().span;
    for (std::size_t i = 0; i < found->word.size(); ++i) next();
    Constant right;
    if (!constant(right, found->precedence, depth + 1)) return false;
    const bool ints = out.kind == Constant::Kind::kInt && right.kind == Constant::Kind::kInt;
    const bool ok = ints ? apply_int(found->word, out.bits, right.bits, out)
                         : apply_float(found->word, as_double(out), as_double(right), out);
    if (!ok) return fail_at(where, "this constant expression has no value");
  }
  return true;
}

bool Parser::constant_unary(Constant& out, int depth) {
  if (depth > limits_.max_depth) return fail("expression nested too deeply");
  if (accept('-')) {
    if (!constant_unary(out, depth + 1)) return false;
    if (out.kind == Constant::Kind::kInt)
      out.bits = 0 - out.bits;
    else
      out.bits ^= std::uint64_t{1} << (out.kind == Constant::Kind::kF32 ? 31 : 63);
    return true;
  }
  if (accept('+')) return constant_unary(out, depth + 1);
  if (at('~') || at('!')) {
    const bool is_not = at('!');
    const Span where = next().span;
    if (!constant_unary(out, depth + 1)) return false;
    if (out.kind != Constant::Kind::kInt) return fail_at(where, "needs an integer");
    out.bits = is_not ? out.bits == 0 : ~out.bits;
    return true;
  }
  if (at('(')) {
    // A cast, (.s64) or (.u64), leaves 64-bit integers as they are.
    if (peek(1).kind == TokenKind::kDotted && peek(2).punct == ')') {
      cursor_ += 3;
      return constant_unary(out, depth + 1);
    }
    next();
    return constant(out, 0, depth + 1) && expect(')', "after the expression");
  }
  if (peek().kind == TokenKind::kIdent && word() == "WARP_SZ") {
    next();
    out = integer(32);
    return true;
  }
  if (peek().kind != TokenKind::kNumber) return fail("expected a constant");
  if (!read_number(word(), out)) return fail("malformed number");
  next();
  return true;
}

bool Parser::unsigned_int(std::string_view what, std::uint32_t& out) {
  const Span where = peek().span;
  Constant value;
  if (!constant(value, 7)) return false;  // not past '>': %r<N> ends there
  if (value.kind != Constant::Kind::kInt || value.bits > UINT32_MAX) {
    return fail_at(where, std::string(what) + " must be a non-negative 32-bit integer");
  }
  out = static_cast<std::uint32_t>(value.bits);
  return true;
}

}  // namespace warpcheck
