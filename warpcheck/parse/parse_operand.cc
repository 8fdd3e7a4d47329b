#include "warpcheck/parse/parser_impl.h"

namespace warpcheck {

bool Parser::operand_list(std::vector<ast::Operand>& out, char end, int depth) {
  if (accept(end)) return true;
  do {
    if (!operand(out.emplace_back(), depth)) return false;
  } while (accept(','));
  return expect(end, "after the operands");
}

bool Parser::operand(ast::Operand& out, int depth) {
  if (depth > 4) return fail("operand nested too deeply");
  const Token first = peek();
  out.span = first.span;
  if (accept('[')) {
    if (!address(out, depth)) return false;
  } else if (accept('{')) {
    out.kind = ast::Operand::Kind::kVector;
    if (!operand_list(out.elements, '}', depth + 1)) return false;
  } else if (first.kind == TokenKind::kIdent && word() != "WARP_SZ") {
    out.name = text(next());
    out.kind = out.name == "_" ? ast::Operand::Kind::kSink : ast::Operand::Kind::kName;
  } else if (at('!') && peek(1).kind == TokenKind::kIdent) {
    next();
    out.negated = true;
    out.name = text(next());
  } else {
    out.kind = ast::Operand::Kind::kConstant;
    if (!constant(out.constant)) return false;
  }
  const bool named = out.kind == ast::Operand::Kind::kName || out.kind == ast::Operand::Kind::kSink;
  if (named && peek().kind == TokenKind::kDotted) out.component = text(next()).substr(1);
  if (named && (at('+') || at('-')) && !offset(out.offset)) return false;
  if (named && accept('|') && !expect_ident("a register after '|'", out.pair)) return false;
  out.span = since(first);
  return true;
}

bool Parser::address(ast::Operand& out, int depth) {
  out.kind = ast::Operand::Kind::kAddress;
  if (peek().kind == TokenKind::kIdent && word() != "WARP_SZ") {
    out.name = text(next());
    if ((at('+') || at('-')) && !offset(out.offset)) return false;
  } else if (!constant(out.constant)) {
    return false;
  }
  if (accept(',')) {
    out.has_coordinates = true;
    if (!expect('{', "before the coordinates")) return false;
    if (!operand_list(out.elements, '}', depth + 1)) return false;
  }
  return expect(']', "after the address");
}

bool Parser::offset(std::int64_t& out) {
  const Span where = peek().span;
  const bool minus = at('-');
  next();
  Constant value;  // "+-8" is what nvcc prints for negative offsets
  if (!constant(value)) return false;
  if (value.kind != Constant::Kind::kInt) return fail_at(where, "an offset must be an integer");
  out = static_cast<std::int64_t>(minus ? 0 - value.bits : value.bits);
  return true;
}

}  // namespace warpcheck
