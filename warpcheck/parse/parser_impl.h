// The parser's state and its productions, implemented in parse_{module,decl,body,operand,const}.cc.
// Every production returns false after reporting an error; its caller resynchronises or gives up.
#pragma once

#include "warpcheck/parse/parser.h"

namespace warpcheck {

class Parser {
 public:
  Parser(SourcePtr source, const ParseLimits& limits);
  ParseResult<ast::Module> run();

 private:
  // Tokens.
  const Token& peek(std::size_t ahead = 0) const;
  std::string_view text(const Token& token) const { return source_->text(token.span); }
  std::string_view word() const { return text(peek()); }
  bool at(char punct) const { return peek().kind == TokenKind::kPunct && peek().punct == punct; }
  bool at_end() const { return peek().kind == TokenKind::kEnd; }
  bool at_dotted(std::string_view directive) const;
  const Token& next();
  bool accept(char punct);
  bool accept_dotted(std::string_view directive);
  bool expect(char punct, std::string_view where);
  bool expect_ident(std::string_view what, std::string_view& out);
  bool fail(std::string message);
  bool fail_at(Span span, std::string message);
  Span since(const Token& first) const;
  void skip_statement();
  bool stopped() const { return errors_.size() >= limits_.max_errors; }

  // Module level: parse_module.cc.
  bool module_item();
  bool version();
  bool target();
  bool file();
  bool section();
  bool debug_strings();
  bool alias();
  bool skip_braces();

  // Declarations: parse_decl.cc.
  bool linkage(Linkage& out);
  bool function(Linkage linkage);
  bool parameters(std::vector<ast::Variable>& out);
  bool parameter(ast::Variable& out);
  bool tuning(ast::Function& out);
  bool variables(Linkage linkage, std::vector<ast::Variable>& out);
  bool variable_prefix(ast::Variable& out);
  bool declarator(ast::Variable& out);
  bool initialiser(ast::Variable& out, int depth);
  bool init_value(ast::InitValue& out);

  // Bodies: parse_body.cc.
  bool body(ast::Function& out);
  bool statement(std::vector<ast::Statement>& out);
  bool directive(std::vector<ast::Statement>& out);
  bool loc(std::vector<ast::Statement>& out);
  bool labelled(std::vector<ast::Statement>& out);
  bool prototype(ast::Prototype& out);
  bool instruction(std::vector<ast::Statement>& out);
  bool call_operands(ast::Instruction& out);
  bool call_list(std::vector<ast::Operand>& out);

  // Operands and constants: parse_operand.cc, parse_const.cc.
  bool operand(ast::Operand& out, int depth = 0);
  bool operand_list(std::vector<ast::Operand>& out, char end, int depth);
  bool address(ast::Operand& out, int depth);
  bool offset(std::int64_t& out);
  bool constant(Constant& out, int min_precedence = 0, int depth = 0);
  bool constant_unary(Constant& out, int depth);
  bool unsigned_int(std::string_view what, std::uint32_t& out);

  SourcePtr source_;
  ParseLimits limits_;
  std::vector<Token> tokens_;
  std::size_t cursor_ = 0;
  std::vector<Diagnostic> errors_;
  ast::Module module_;
};

}  // namespace warpcheck
