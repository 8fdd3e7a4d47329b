// Token handling and error recovery; the productions are in parse_*.cc.
#include "warpcheck/parse/parser.h"

#include "warpcheck/parse/parser_impl.h"

namespace warpcheck {

std::string_view to_string(Space space) {
  constexpr std::string_view kNames[] = {"reg", "global", "shared", "const", "local", "param", ""};
  return kNames[static_cast<std::size_t>(space)];
}

std::string_view to_string(Linkage linkage) {
  constexpr std::string_view kNames[] = {"", "extern", "visible", "weak", "common"};
  return kNames[static_cast<std::size_t>(linkage)];
}

ParseResult<ast::Module> parse(SourcePtr source, const ParseLimits& limits) {
  if (source->text().size() > limits.max_bytes) {
    return tl::unexpected(Errors{source, {{{0, 0}, "the file is larger than the limit"}}});
  }
  return Parser(std::move(source), limits).run();
}

Parser::Parser(SourcePtr source, const ParseLimits& limits)
    : source_(std::move(source)), limits_(limits), tokens_(tokenize(source_->text())) {
  module_.source = source_;
}

ParseResult<ast::Module> Parser::run() {
  while (!at_end() && !stopped()) {
    const std::size_t before = cursor_;
    if (!module_item()) skip_statement();
    if (cursor_ == before) next();
  }
  if (errors_.empty() && module_.version_major == 0) {
    errors_.push_back({{0, 0}, "a module starts with .version"});
  }
  if (!errors_.empty()) return tl::unexpected(Errors{source_, std::move(errors_)});
  return std::move(module_);
}

const Token& Parser::peek(std::size_t ahead) const {
  return tokens_[std::min(cursor_ + ahead, tokens_.size() - 1)];
}

const Token& Parser::next() {
  const Token& token = peek();
  if (!at_end()) ++cursor_;
  return token;
}

bool Parser::at_dotted(std::string_view directive) const {
  return peek().kind == TokenKind::kDotted && word().substr(1) == directive;
}

bool Parser::accept(char punct) {
  if (!at(punct)) return false;
  next();
  return true;
}

bool Parser::accept_dotted(std::string_view directive) {
  if (!at_dotted(directive)) return false;
  next();
  return true;
}

bool Parser::expect(char punct, std::string_view where) {
  if (accept(punct)) return true;
  return fail(std::string("expected '") + punct + "' " + std::string(where));
}

bool Parser::expect_ident(std::string_view what, std::string_view& out) {
  if (peek().kind != TokenKind::kIdent) return fail("expected " + std::string(what));
  out = text(next());
  return true;
}

bool Parser::fail(std::string message) {
  if (at_end()) message += ", found the end of the file";
  return fail_at(peek().span, std::move(message));
}

bool Parser::fail_at(Span span, std::string message) {
  if (!stopped()) errors_.push_back({span, std::move(message)});
  return false;
}

Span Parser::since(const Token& first) const {
  const Span last = cursor_ > 0 ? tokens_[cursor_ - 1].span : first.span;
  return {first.span.offset, last.offset + last.length - first.span.offset};
}

void Parser::skip_statement() {
  // To the end of the statement, or in front of a brace: the caller knows its scope.
  while (!at_end() && !at('{') && !at('}')) {
    if (accept(';')) return;
    next();
  }
}

}  // namespace warpcheck
