//! Rows of messages that are tables. PURE.

use std::fmt;

/// A row of a table: of a message whose lists are columns (option `amber.columns`). Implement it for
/// the rows of your own messages.
///
/// ```
/// use amber_proto::drive_to_point::Targets;
/// use amber_values::{Row, Target};
///
/// let table: Targets = Target::table(&[Target::new(1.0, 2.0), Target::new(3.0, 2.0)]);
/// assert_eq!(table.longitudes, [1.0, 3.0]);
/// assert_eq!(Target::rows(&table)?.len(), 2);
/// # Ok::<(), amber_values::UnequalColumns>(())
/// ```
pub trait Row<Table>: Sized {
    /// The rows of a table.
    ///
    /// # Errors
    /// The columns differ in length.
    fn rows(table: &Table) -> Result<Vec<Self>, UnequalColumns>;

    /// The table with these rows.
    fn table(rows: &[Self]) -> Table;
}

/// The columns of a table differ in length.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnequalColumns {
    lengths: Vec<usize>,
}

impl UnequalColumns {
    /// Checks that all columns have the same length.
    ///
    /// # Errors
    /// They do not.
    pub fn check(lengths: &[usize]) -> Result<(), Self> {
        match lengths.windows(2).all(|pair| pair[0] == pair[1]) {
            true => Ok(()),
            false => Err(Self {
                lengths: lengths.to_vec(),
            }),
        }
    }
}

impl fmt::Display for UnequalColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths: Vec<_> = self.lengths.iter().map(usize::to_string).collect();
        write!(f, "the columns have {} values", lengths.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_different_lengths_are_an_error() {
        assert_eq!(UnequalColumns::check(&[]), Ok(()));
        assert_eq!(UnequalColumns::check(&[2, 2, 2]), Ok(()));
        let error = UnequalColumns::check(&[2, 2, 1]).unwrap_err();
        assert_eq!(error.to_string(), "the columns have 2, 2, 1 values");
    }
}
