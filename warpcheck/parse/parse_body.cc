#include "warpcheck/parse/parser_impl.h"

namespace warpcheck {

bool Parser::body(ast::Function& out) {
  int depth = 0;
  do {
    if (at_end()) return fail("expected '}' at the end of '" + std::string(out.name) + "'");
    if (stopped()) return false;
    const Span span = peek().span;
    if (accept('{')) {
      if (++depth > limits_.max_depth) return fail_at(span, "scopes nested too deeply");
      if (depth > 1) out.body.push_back({span, ast::ScopeBegin{}});
    } else if (accept('}')) {
      if (--depth > 0) out.body.push_back({span, ast::ScopeEnd{}});
    } else {
      const std::size_t before = cursor_;
      if (!statement(out.body)) {
        skip_statement();
        if (cursor_ == before && !at('{') && !at('}')) next();
      }
    }
  } while (depth > 0);
  return true;
}

bool Parser::statement(std::vector<ast::Statement>& out) {
  if (accept(';')) return true;
  if (peek().kind == TokenKind::kDotted) return directive(out);
  if (peek().kind == TokenKind::kIdent && peek(1).punct == ':') return labelled(out);
  if (peek().kind == TokenKind::kIdent || at('@')) return instruction(out);
  return fail("expected an instruction, a directive or a label");
}

bool Parser::directive(std::vector<ast::Statement>& out) {
  const Token first = peek();
  if (at_dotted("loc")) return loc(out);
  if (accept_dotted("pragma")) {
    if (peek().kind != TokenKind::kString) return fail("expected a string after .pragma");
    const std::string_view quoted = text(next());
    out.push_back({since(first), ast::Pragma{quoted.substr(1, quoted.size() - 2)}});
    return expect(';', "after .pragma");
  }
  Linkage link = Linkage::kInternal;
  if (!linkage(link)) return false;
  std::vector<ast::Variable> found;
  const bool ok = variables(link, found);
  for (ast::Variable& each : found) {
    const Span span = each.span;
    out.push_back({span, std::move(each)});
  }
  return ok;
}

bool Parser::loc(std::vector<ast::Statement>& out) {
  const Token first = next();
  ast::Loc node;
  if (!unsigned_int("the file", node.file) || !unsigned_int("the line", node.line) ||
      !unsigned_int("the column", node.column)) {
    return false;
  }
  while (accept(',')) {
    std::string_view attribute;
    if (!expect_ident("function_name or inlined_at", attribute)) return false;
    if (attribute == "function_name") {
      std::int64_t ignored = 0;
      if (!expect_ident("a label", node.function_name)) return false;
      if (at('+') && !offset(ignored)) return false;
    } else if (attribute == "inlined_at") {
      node.inlined = true;
      if (!unsigned_int("the file", node.at_file) || !unsigned_int("the line", node.at_line) ||
          !unsigned_int("the column", node.at_column)) {
        return false;
      }
    } else {
      return fail("unknown attribute of .loc");
    }
  }
  out.push_back({since(first), node});
  return true;
}

bool Parser::labelled(std::vector<ast::Statement>& out) {
  const Token first = next();
  const std::string_view name = text(first);
  next();
  if (accept_dotted("branchtargets") || accept_dotted("calltargets")) {
    ast::BranchTargets node{name, {}};
    if (!operand_list(node.labels, ';', 0)) return false;
    out.push_back({since(first), std::move(node)});
  } else if (accept_dotted("callprototype")) {
    ast::Prototype node;
    node.name = name;
    if (!prototype(node)) return false;
    out.push_back({since(first), std::move(node)});
  } else {
    out.push_back({first.span, ast::Label{name}});
  }
  return true;
}

bool Parser::prototype(ast::Prototype& out) {
  if (at('(') && !parameters(out.returns)) return false;
  std::string_view placeholder;
  if (!expect_ident("'_' in .callprototype", placeholder)) return false;
  if (at('(') && !parameters(out.params)) return false;
  ast::Function attributes;  // .noreturn and .abi_preserve do not change a call's meaning here
  return tuning(attributes) && expect(';', "after .callprototype");
}

bool Parser::instruction(std::vector<ast::Statement>& out) {
  const Token first = peek();
  ast::Instruction node;
  if (accept('@')) {
    ast::Guard guard;
    guard.negated = accept('!');
    guard.span = peek().span;
    if (!expect_ident("a predicate after '@'", guard.name)) return false;
    node.guard = guard;
  }
  const Token opcode = peek();
  std::string_view word;
  if (!expect_ident("an instruction", word)) return false;
  node.words.push_back(word);
  while (peek().kind == TokenKind::kDotted) node.words.push_back(text(next()).substr(1));
  node.opcode = since(opcode);
  const bool ok = word == "call" ? call_operands(node) : operand_list(node.operands, ';', 0);
  if (!ok) return false;
  out.push_back({since(first), std::move(node)});
  return true;
}

bool Parser::call_operands(ast::Instruction& out) {
  ast::Call& call = out.call.emplace();
  if (at('(')) {
    if (!call_list(call.returns) || !expect(',', "after the return parameters")) return false;
  }
  if (!operand(call.callee)) return false;
  if (accept(',')) {
    if (at('(')) {
      if (!call_list(call.arguments)) return false;
      if (accept(',') && !operand(call.prototype.emplace())) return false;
    } else if (!operand(call.prototype.emplace())) {
      return false;
    }
  }
  return expect(';', "after the call");
}

bool Parser::call_list(std::vector<ast::Operand>& out) {
  next();
  return operand_list(out, ')', 0);
}

}  // namespace warpcheck
