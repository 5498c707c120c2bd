//! The macros of `amber-sdk`, which documents them.

use proc_macro::{Delimiter, Group, Literal, Span, TokenStream, TokenTree};

#[cfg(feature = "device")]
mod device;

/// See `amber_sdk::main`.
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, function: TokenStream) -> TokenStream {
    if let Some(argument) = arguments.into_iter().next() {
        let text =
            "this takes no arguments: the environment variable AMBER_MEDIATOR says which robot";
        return refused(argument.span(), text);
    }
    let words: Vec<_> = function.clone().into_iter().collect();
    let is = |at: Option<usize>, word: &str| {
        let word_at = at.and_then(|at| words.get(at));
        matches!(word_at, Some(TokenTree::Ident(it)) if it.to_string() == word)
    };
    let at = (0..words.len()).find(|at| is(Some(*at), "fn"));
    let is_async_main =
        at.is_some_and(|at| is(at.checked_sub(1), "async") && is(Some(at + 1), "main"));
    if !is_async_main {
        let span = at.map_or_else(Span::call_site, |at| words[at].span());
        let text = "this stands before `async fn main(robot: amber_sdk::Robot)`";
        return refused(span, text);
    }
    // The function stands within the new one, so both can have that name.
    let mut body = function;
    body.extend(code("::amber_sdk::run(main)"));
    let mut whole = code("fn main() -> ::std::process::ExitCode");
    whole.extend([TokenTree::Group(Group::new(Delimiter::Brace, body))]);
    whole
}

/// See `amber_sdk::device`.
#[cfg(feature = "device")]
#[proc_macro]
pub fn device(arguments: TokenStream) -> TokenStream {
    let mut arguments = arguments.into_iter();
    let (Some(TokenTree::Literal(path)), None) = (arguments.next(), arguments.next()) else {
        let text = "this takes the path of a file, such as device!(\"lamp.proto\")";
        return refused(Span::call_site(), text);
    };
    match device::module(&path.to_string()) {
        Ok(module) => code(&module),
        Err(why) => refused(path.span(), &why),
    }
}

/// Code that this crate has written.
fn code(text: &str) -> TokenStream {
    match text.parse() {
        Ok(code) => code,
        Err(error) => refused(Span::call_site(), &error.to_string()),
    }
}

/// An error of the compiler at this place.
fn refused(span: Span, why: &str) -> TokenStream {
    let mut text = TokenTree::Literal(Literal::string(why));
    text.set_span(span);
    let text = TokenStream::from(text);
    let at_place = |mut tree: TokenTree| {
        tree.set_span(span);
        tree
    };
    let mut error: TokenStream = (code("::core::compile_error!").into_iter())
        .map(at_place)
        .collect();
    error.extend([
        at_place(TokenTree::Group(Group::new(Delimiter::Parenthesis, text))),
        at_place(TokenTree::Punct(proc_macro::Punct::new(
            ';',
            proc_macro::Spacing::Alone,
        ))),
    ]);
    error
}
