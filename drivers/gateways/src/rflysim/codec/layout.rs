//! Packed little-endian layouts: numbers, arrays and padding, one after the other. PURE.

/// A value with a fixed size on the wire.
pub(super) trait Layout: Sized {
    /// Its size, in bytes.
    const SIZE: usize;

    /// Reads it from exactly [`Self::SIZE`] bytes.
    fn read(bytes: &[u8]) -> Self;

    /// Writes it to exactly [`Self::SIZE`] bytes.
    fn write(&self, bytes: &mut [u8]);

    /// Whether no number in it is infinite or NaN.
    fn is_finite(&self) -> bool;
}

macro_rules! number {
    ($type:ty, $finite:expr) => {
        impl Layout for $type {
            const SIZE: usize = size_of::<$type>();

            fn read(bytes: &[u8]) -> Self {
                let mut number = [0; Self::SIZE];
                number.copy_from_slice(bytes);
                Self::from_le_bytes(number)
            }

            fn write(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }

            fn is_finite(&self) -> bool {
                let finite: fn(&$type) -> bool = $finite;
                finite(self)
            }
        }
    };
}

number!(i32, |_| true);
number!(u32, |_| true);
number!(u64, |_| true);
number!(f32, |number| f32::is_finite(*number));
number!(f64, |number| f64::is_finite(*number));

impl<T: Layout + Copy, const N: usize> Layout for [T; N] {
    const SIZE: usize = N * T::SIZE;

    fn read(bytes: &[u8]) -> Self {
        std::array::from_fn(|i| T::read(&bytes[i * T::SIZE..][..T::SIZE]))
    }

    fn write(&self, bytes: &mut [u8]) {
        for (item, place) in self.iter().zip(bytes.chunks_exact_mut(T::SIZE)) {
            item.write(place);
        }
    }

    fn is_finite(&self) -> bool {
        self.iter().all(Layout::is_finite)
    }
}

/// Bytes that C leaves empty to align the next field. Any value is accepted; zeros are written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Padding<const N: usize>;

impl<const N: usize> Layout for Padding<N> {
    const SIZE: usize = N;

    fn read(_: &[u8]) -> Self {
        Self
    }

    fn write(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }

    fn is_finite(&self) -> bool {
        true
    }
}

/// Declares structs whose fields follow each other on the wire in this order.
macro_rules! layouts {
    ($($(#[$meta:meta])* pub struct $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }

        impl $crate::rflysim::codec::layout::Layout for $name {
            const SIZE: usize = 0 $(+ <$type>::SIZE)*;

            fn read(bytes: &[u8]) -> Self {
                let mut rest = bytes;
                $(let $field = {
                    let (field, others) = rest.split_at(<$type>::SIZE);
                    rest = others;
                    <$type>::read(field)
                };)*
                debug_assert!(rest.is_empty());
                Self { $($field),* }
            }

            fn write(&self, bytes: &mut [u8]) {
                let mut rest = bytes;
                $({
                    let (field, others) = rest.split_at_mut(<$type>::SIZE);
                    rest = others;
                    self.$field.write(field);
                })*
                debug_assert!(rest.is_empty());
            }

            fn is_finite(&self) -> bool {
                true $(&& self.$field.is_finite())*
            }
        }
    )*};
}

pub(super) use layouts;
