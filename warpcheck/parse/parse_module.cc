#include "warpcheck/parse/parser_impl.h"

namespace warpcheck {

bool Parser::module_item() {
  if (at('{')) return skip_braces();  // what an error left behind
  if (at('}') || at(';')) {
    next();
    return true;
  }
  if (at_dotted("version")) return version();
  if (at_dotted("target")) return target();
  if (accept_dotted("address_size")) {
    std::uint32_t size = 0;
    const Span where = peek().span;
    if (!unsigned_int("the address size", size)) return false;
    if (size != 32 && size != 64) return fail_at(where, "the address size is 32 or 64");
    module_.address_size = static_cast<int>(size);
    return true;
  }
  if (at_dotted("file")) return file();
  if (at_dotted("section")) return section();
  if (at_dotted("alias")) return alias();
  if (accept_dotted("pragma")) {
    if (peek().kind != TokenKind::kString) return fail("expected a string after .pragma");
    next();
    return expect(';', "after .pragma");
  }
  if (at_dotted("loc")) {
    std::vector<ast::Statement> ignored;
    return loc(ignored);
  }
  Linkage link = Linkage::kInternal;
  if (!linkage(link)) return false;
  if (at_dotted("func") || at_dotted("entry")) return function(link);
  return variables(link, module_.variables);
}

bool Parser::version() {
  next();
  const std::string_view digits = word();
  const auto dot = digits.find('.');
  if (peek().kind != TokenKind::kNumber || dot == std::string_view::npos ||
      dot + 1 >= digits.size() || digits.size() > 5) {
    return fail("expected a version such as 9.0");
  }
  Constant major, minor;
  if (!read_number(digits.substr(0, dot), major) || !read_number(digits.substr(dot + 1), minor)) {
    return fail("expected a version such as 9.0");
  }
  if (major.bits == 0) return fail("there is no such version");
  module_.version_major = static_cast<int>(major.bits);
  module_.version_minor = static_cast<int>(minor.bits);
  next();
  return true;
}

bool Parser::target() {
  next();
  do {
    std::string_view name;
    if (!expect_ident("a target such as sm_90a", name)) return false;
    module_.targets.push_back(name);
  } while (accept(','));
  return true;
}

bool Parser::file() {
  next();
  ast::File out;
  if (!unsigned_int("the file index", out.index)) return false;
  if (peek().kind != TokenKind::kString) return fail("expected a file name");
  const std::string_view quoted = text(next());
  out.path = std::string(quoted.substr(1, quoted.size() - 2));
  module_.files.push_back(std::move(out));
  for (int i = 0; i < 2 && accept(','); ++i) {
    Constant time_stamp_or_size;  // of no use here
    if (!constant(time_stamp_or_size)) return false;
  }
  return true;
}

bool Parser::section() {
  next();
  if (peek().kind != TokenKind::kDotted && peek().kind != TokenKind::kIdent) {
    return fail("expected a section name");
  }
  const bool is_strings = text(next()) == ".debug_str";
  if (!at('{')) return fail("expected '{' after the section name");
  return is_strings ? debug_strings() : skip_braces();
}

bool Parser::debug_strings() {
  // The names that .loc's function_name refers to: labels, each followed by .b8 bytes.
  next();
  while (!at_end() && !at('}')) {
    if (peek().kind == TokenKind::kIdent && peek(1).punct == ':') {
      module_.debug_strings.push_back({text(next()), {}});
    } else if (peek().kind == TokenKind::kNumber && !module_.debug_strings.empty()) {
      Constant byte;
      if (read_number(word(), byte) && byte.bits != 0) {
        module_.debug_strings.back().text.push_back(static_cast<char>(byte.bits));
      }
    }
    next();
  }
  return expect('}', "at the end of the section");
}

bool Parser::alias() {
  const Token first = next();
  ast::Alias out;
  if (!expect_ident("a function", out.name) || !expect(',', "in .alias") ||
      !expect_ident("a function", out.target)) {
    return false;
  }
  out.span = since(first);
  module_.aliases.push_back(out);
  return expect(';', "after .alias");
}

bool Parser::skip_braces() {
  std::size_t depth = 0;
  do {
    if (at_end()) return fail("expected '}'");
    if (at('{')) ++depth;
    if (at('}')) --depth;
    next();
  } while (depth > 0);
  return true;
}

}  // namespace warpcheck
