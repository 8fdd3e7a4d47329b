#include "warpcheck/isa/form.h"

#include <charconv>

namespace warpcheck {
namespace {

struct RawRow {
  FormId id;
  std::string_view name, opcode, mods, operands, isa, target, section;
  Family family;
};

constexpr RawRow kRows[] = {
#define PTX_FORM(id, opcode, mods, operands, isa, target, section, family) \
  {FormId::id, #id, opcode, mods, operands, isa, target, section, Family::family},
#include "warpcheck/isa/instructions.def"
#undef PTX_FORM
};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    if (end != 0) parts.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return parts;
}

/// Compiles the little languages of the table; faults are collected, never fatal.
class TableCompiler {
 public:
  TableCompiler() {
    for (const RawRow& raw : kRows) forms.push_back(compile(raw));
  }

  std::vector<Form> forms;
  std::vector<std::string> faults;

 private:
  Form compile(const RawRow& raw) {
    Form out;
    out.id = raw.id;
    out.name = raw.name.substr(1);
    out.opcode = raw.opcode;
    out.isa = raw.isa;
    out.target = raw.target;
    out.section = raw.section;
    out.family = raw.family;
    out.opcode_words = split(raw.opcode, '.');
    for (const auto word : split(raw.mods, ' ')) out.groups.push_back(compile_group(raw, word));
    for (const auto word : split(raw.operands, ' ')) {
      out.operands.push_back(compile_operand(raw, word));
    }
    return out;
  }

  void fault(const RawRow& raw, std::string_view word) {
    faults.push_back(std::string(raw.name) + ": cannot read '" + std::string(word) + "'");
  }

  ModGroup compile_group(const RawRow& raw, std::string_view word) {
    ModGroup out;
    const auto equals = word.find('=');
    std::string_view name = word.substr(0, equals);
    if (name.ends_with('?')) {
      out.optional = true;
      name.remove_suffix(1);
    }
    const auto values = equals == std::string_view::npos ? name : word.substr(equals + 1);
    const auto group = group_from(name);
    if (!group) fault(raw, word);
    out.group = group.value_or(Group::kCount);
    if (name == "stype") out.type_slot = 4;
    if (name.starts_with("type")) out.type_slot = name.size() > 4 ? name[4] - '1' : 0;
    for (const auto value : split(values, '|')) add_value(raw, value, out);
    return out;
  }

  void add_value(const RawRow& raw, std::string_view value, ModGroup& out) {
    if (out.type_slot >= 0) {
      const auto type = type_from(value);
      if (!type) return fault(raw, value);
      out.types.push_back(*type);
    } else if (const auto shape = parse_shape(value)) {
      out.shapes.push_back(*shape);
    } else if (const auto mod = mod_from(value)) {
      out.values.push_back(*mod);
    } else {
      fault(raw, value);
    }
  }

  static std::optional<Role> role_of(char letter) {
    constexpr std::string_view kLetters = "dDxsipmtlf";
    const auto at = kLetters.find(letter);
    if (at == std::string_view::npos) return std::nullopt;
    return static_cast<Role>(at);
  }

  OperandSpec compile_operand(const RawRow& raw, std::string_view word) {
    const std::string_view whole = word;
    OperandSpec out;
    const auto role = role_of(word.front());
    if (!role) fault(raw, whole);
    out.role = role.value_or(Role::kSrc);
    word.remove_prefix(1);
    if (const auto at = word.find('@'); at != std::string_view::npos) {
      out.only_with = group_from(word.substr(at + 1));
      if (!out.only_with) fault(raw, whole);
      word = word.substr(0, at);
    }
    if (word.ends_with('?')) {
      out.optional = true;
      word.remove_suffix(1);
    }
    if (word.starts_with('*')) {
      out.length = static_cast<int>(Arity::kFollowsVec);
      word.remove_prefix(1);
    } else if (word.starts_with("{}")) {
      out.length = static_cast<int>(Arity::kAnyVector);
      word.remove_prefix(2);
    } else if (word.starts_with('{')) {
      out.length = word[1] - '0';
      word.remove_prefix(3);
    }
    if (word.starts_with(':'))
      set_type(raw, whole, word.substr(1), out);
    else if (!word.empty())
      fault(raw, whole);
    return out;
  }

  void set_type(const RawRow& raw, std::string_view whole, std::string_view word,
                OperandSpec& out) {
    if (word.starts_with('~')) {
      out.wider = true;
      word.remove_prefix(1);
    }
    if (word == "w") {
      out.doubled = true;
    } else if (word.size() == 1 && word[0] >= '0' && word[0] <= '3') {
      out.type_slot = word[0] - '0';
    } else if (const auto type = type_from(word)) {
      out.type = *type;
    } else {
      fault(raw, whole);
    }
  }
};

const TableCompiler& table() {
  static const TableCompiler compiled;
  return compiled;
}

bool read_number(std::string_view& text, std::uint16_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

Type doubled(Type type) {
  switch (type) {
    case Type::kU16:
      return Type::kU32;
    case Type::kS16:
      return Type::kS32;
    case Type::kU32:
      return Type::kU64;
    case Type::kS32:
      return Type::kS64;
    default:
      return Type::kAny;
  }
}

}  // namespace

bool ShapePattern::accepts(const MatrixShape& candidate) const {
  if (!any_n) return candidate == shape;
  return candidate.m == shape.m && candidate.k == shape.k && candidate.n % 8 == 0 &&
         candidate.n >= 8 && candidate.n <= 256;
}

std::optional<ShapePattern> parse_shape(std::string_view word) {
  ShapePattern out;
  if (!word.starts_with('m')) return std::nullopt;
  word.remove_prefix(1);
  if (!read_number(word, out.shape.m) || !word.starts_with('n')) return std::nullopt;
  word.remove_prefix(1);
  if (word.starts_with('*')) {
    out.any_n = true;
    word.remove_prefix(1);
  } else if (!read_number(word, out.shape.n)) {
    return std::nullopt;
  }
  if (word.empty()) return out;
  if (!word.starts_with('k')) return std::nullopt;
  word.remove_prefix(1);
  if (!read_number(word, out.shape.k) || !word.empty()) return std::nullopt;
  return out;
}

Type OperandSpec::resolve(const Modifiers& mods) const {
  if (role == Role::kPred) return Type::kPred;
  if (type != Type::kNone) return type;
  const Type slot = mods.types[static_cast<std::size_t>(type_slot)];
  if (slot == Type::kNone) return Type::kAny;
  return doubled ? warpcheck::doubled(slot) : slot;
}

std::string_view to_string(Family family) {
  constexpr std::string_view kNames[] = {
      "integer",     "float",  "half",  "compare", "logic",   "move",     "convert",    "memory",
      "multimem",    "atomic", "warp",  "barrier", "fence",   "mbarrier", "async_copy", "bulk_copy",
      "tensor_copy", "matrix", "wgmma", "tcgen05", "control", "misc"};
  return kNames[static_cast<std::size_t>(family)];
}

std::span<const Form> all_forms() { return table().forms; }
const Form& form(FormId id) { return table().forms[static_cast<std::size_t>(id)]; }
std::span<const std::string> table_faults() { return table().faults; }

}  // namespace warpcheck
