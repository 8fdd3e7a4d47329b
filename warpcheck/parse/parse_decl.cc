#include "warpcheck/parse/parser_impl.h"

namespace warpcheck {
namespace {

constexpr std::string_view kTunings[] = {
    "maxntid",        "reqntid",           "minnctapersm",      "maxnctapersm",
    "maxnreg",        "noreturn",          "reqnctapercluster", "explicitcluster",
    "maxclusterrank", "blocksareclusters", "abi_preserve",      "abi_preserve_control"};

Space space_from(std::string_view word) {
  for (const Space space :
       {Space::kReg, Space::kGlobal, Space::kShared, Space::kConst, Space::kLocal, Space::kParam}) {
    if (word == to_string(space)) return space;
  }
  if (word == "shared::cta") return Space::kShared;
  return Space::kNone;
}

}  // namespace

bool Parser::linkage(Linkage& out) {
  while (true) {
    if (accept_dotted("visible"))
      out = Linkage::kVisible;
    else if (accept_dotted("extern"))
      out = Linkage::kExtern;
    else if (accept_dotted("weak"))
      out = Linkage::kWeak;
    else if (accept_dotted("common"))
      out = Linkage::kCommon;
    else
      return true;
  }
}

bool Parser::function(Linkage link) {
  const Token first = next();
  ast::Function out;
  out.is_entry = text(first) == ".entry";
  out.linkage = link;
  if (accept_dotted("attribute") && !(accept('(') && accept_dotted("unified") && skip_braces())) {
    return fail("this .attribute is not supported on functions");
  }
  if (at('(') && !parameters(out.returns)) return false;
  if (!expect_ident("the function's name", out.name)) return false;
  if (at('(') && !parameters(out.params)) return false;
  out.span = since(first);
  if (!tuning(out)) return false;
  if (!accept(';')) {
    if (!at('{')) return fail("expected '{' or ';' after the function's head");
    out.has_body = true;
    if (!body(out)) return false;
  }
  module_.functions.push_back(std::move(out));
  return true;
}

bool Parser::parameters(std::vector<ast::Variable>& out) {
  next();
  if (accept(')')) return true;
  do {
    if (!parameter(out.emplace_back())) return false;
  } while (accept(','));
  return expect(')', "after the parameters");
}

bool Parser::parameter(ast::Variable& out) {
  if (!variable_prefix(out)) return false;
  if (out.space != Space::kParam && out.space != Space::kReg) {
    return fail("a parameter is .param or .reg");
  }
  return declarator(out);
}

bool Parser::tuning(ast::Function& out) {
  while (peek().kind == TokenKind::kDotted || at(',')) {
    if (accept(',')) continue;
    const Token first = next();
    ast::Tuning entry;
    entry.directive = text(first).substr(1);
    if (entry.directive == "pragma") {
      if (peek().kind != TokenKind::kString) return fail("expected a string after .pragma");
      next();
      if (!expect(';', "after .pragma")) return false;
      continue;
    }
    bool known = false;
    for (const auto each : kTunings) known = known || each == entry.directive;
    if (!known) return fail_at(first.span, "unknown directive in a function's head");
    while (peek().kind == TokenKind::kNumber) {
      if (!unsigned_int("the value", entry.values.emplace_back())) return false;
      if (!at(',')) break;
      next();
    }
    if (entry.values.size() > 3) return fail_at(first.span, "too many values");
    entry.span = since(first);
    out.tuning.push_back(std::move(entry));
  }
  return true;
}

bool Parser::variables(Linkage link, std::vector<ast::Variable>& out) {
  ast::Variable prefix;
  prefix.linkage = link;
  if (!variable_prefix(prefix)) return false;
  do {
    out.push_back(prefix);
    if (!declarator(out.back())) {
      out.pop_back();
      return false;
    }
  } while (accept(','));
  return expect(';', "after the declaration");
}

bool Parser::variable_prefix(ast::Variable& out) {
  const Token first = peek();
  bool typed = false;
  while (peek().kind == TokenKind::kDotted) {
    const std::string_view directive = word().substr(1);
    const Space space = space_from(directive);
    if (out.is_pointer && space != Space::kNone) {
      out.pointee = space;
    } else if (space != Space::kNone && out.space == Space::kNone) {
      out.space = space;
    } else if (directive == "align") {
      next();
      const Span where = peek().span;
      if (!unsigned_int("the alignment", out.align)) return false;
      if (out.align == 0 || (out.align & (out.align - 1)) != 0) {
        return fail_at(where, "an alignment is a power of two");
      }
      continue;
    } else if (directive == "v2" || directive == "v4" || directive == "v8") {
      out.vector = directive[1] - '0';
    } else if (directive == "ptr") {
      out.is_pointer = true;
    } else if (directive == "attribute") {
      next();
      if (!expect('(', "after .attribute")) return false;
      while (!at_end() && !at(')') && !at(';')) next();
      if (!expect(')', "after .attribute")) return false;
      continue;
    } else if (const auto type = type_from(directive)) {
      out.type = *type;
      typed = true;
    } else if (directive == "texref" || directive == "samplerref" || directive == "surfref") {
      out.type = Type::kB64;
      typed = true;
    } else {
      return fail("unknown directive '." + std::string(directive) + "'");
    }
    next();
  }
  if (out.space == Space::kNone) return fail_at(first.span, "expected a directive");
  if (!typed) return fail("expected a type");
  return true;
}

bool Parser::declarator(ast::Variable& out) {
  const Token first = peek();
  if (!expect_ident("a name", out.name)) return false;
  if (accept('<')) {
    const Span where = peek().span;
    if (!unsigned_int("the register count", out.range)) return false;
    if (out.range == 0 || out.range > limits_.max_registers) {
      return fail_at(where, "this register count is out of range");
    }
    if (!expect('>', "after the register count")) return false;
  }
  while (accept('[')) {
    Constant size;
    if (!at(']') && !constant(size)) return false;
    if (size.kind != Constant::Kind::kInt || size.bits > (std::uint64_t{1} << 40)) {
      return fail("this array size is out of range");
    }
    out.dims.push_back(size.bits);
    if (!expect(']', "after the array size")) return false;
  }
  out.span = since(first);
  return !accept('=') || initialiser(out, 0);
}

bool Parser::initialiser(ast::Variable& out, int depth) {
  if (depth > 8) return fail("initialiser nested too deeply");
  if (!accept('{')) return init_value(out.init.emplace_back());
  if (accept('}')) return true;
  do {
    if (!initialiser(out, depth + 1)) return false;
  } while (accept(','));
  return expect('}', "after the initialiser");
}

bool Parser::init_value(ast::InitValue& out) {
  const Token first = peek();
  const bool masked = first.kind == TokenKind::kNumber && peek(1).punct == '(';
  if (masked) {  // 0xFF00(symbol): one byte of an address
    Constant mask;
    if (!read_number(word(), mask)) return fail("malformed number");
    next();
    next();
    out.byte_mask = 0;
    while (mask.bits > 0xff) {
      mask.bits >>= 8;
      ++out.byte_mask;
    }
  }
  if (peek().kind == TokenKind::kIdent && word() == "generic" && peek(1).punct == '(') {
    cursor_ += 2;
    out.generic = true;
  }
  if (peek().kind == TokenKind::kIdent && word() != "WARP_SZ") {
    out.symbol = text(next());
    if (out.generic && !expect(')', "after generic")) return false;
    if ((at('+') || at('-')) && !offset(out.offset)) return false;
  } else if (out.generic || masked) {
    return fail("expected a symbol");
  } else if (!constant(out.constant)) {
    return false;
  }
  if (masked && !expect(')', "after the symbol")) return false;
  out.span = since(first);
  return true;
}

}  // namespace warpcheck
