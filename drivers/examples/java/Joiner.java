import java.util.Arrays;
import java.util.BitSet;
import pl.edu.agh.amber.common.proto.CommonProto.DriverMsg;
import pl.edu.agh.amber.common.proto.CommonProto.DriverMsg.MsgType;
import pl.edu.agh.amber.common.proto.CommonProto.MissingPieces;
import pl.edu.agh.amber.common.proto.CommonProto.Piece;

/** Joins the pieces of one answer that is longer than a frame: see docs/PROTOCOL.md. */
final class Joiner {
    /** Bytes of a long message. */
    private static final int MAX_LONG = 8 << 20;
    private static final int MAX_PIECES = 8192;
    /** Bytes of a piece. */
    private static final int MAX_PART = 32767;
    /** Pieces in one call for missing ones. */
    private static final int MAX_MISSING = 400;

    /** The number of the message among those of its sender, and of its pieces. */
    private int number;
    private int count;
    /** Of each piece but the last. */
    private int length;
    /** Of the message, once the last piece has come. */
    private int total;
    /** Null before the first piece. */
    private byte[] data;
    private final BitSet has = new BitSet();

    boolean hasBegun() {
        return data != null;
    }

    /** Takes a piece. Returns the message, a complete DriverMsg, if it was the last missing one; else null. */
    byte[] join(Piece piece) {
        int index = piece.getIndex();
        byte[] part = piece.getData().toByteArray();
        boolean isLast = index + 1 == piece.getCount();
        if (piece.hasStream()) {
            return null; // published data, not an answer
        }
        // A piece that contradicts itself; unsigned numbers may be negative here.
        if (piece.getCount() < 2 || piece.getCount() > MAX_PIECES || index < 0 || index >= piece.getCount()
                || part.length == 0 || part.length > MAX_PART) {
            return null;
        }
        if (data == null || piece.getMessage() - number > 0) {
            // The place of the last piece is known only with the length of another: it is called for.
            if (isLast || (piece.getCount() - 1L) * part.length >= MAX_LONG) {
                return null;
            }
            number = piece.getMessage();
            count = piece.getCount();
            length = part.length;
            data = new byte[count * length];
            has.clear();
        }
        // A piece of an older message, one that contradicts the others, or one that came twice.
        if (piece.getMessage() != number || piece.getCount() != count || has.get(index)
                || (isLast ? part.length > length : part.length != length)) {
            return null;
        }
        has.set(index);
        System.arraycopy(part, 0, data, index * length, part.length);
        if (isLast) {
            total = index * length + part.length;
        }
        return has.cardinality() == count ? Arrays.copyOf(data, total) : null;
    }

    /** The call for the pieces that have not come. */
    DriverMsg call() {
        MissingPieces.Builder missing = MissingPieces.newBuilder().setMessage(number);
        for (int index = has.nextClearBit(0); index < count && missing.getIndexCount() < MAX_MISSING;
                index = has.nextClearBit(index + 1)) {
            missing.addIndex(index);
        }
        return DriverMsg.newBuilder().setType(MsgType.DATA).setMissing(missing).build();
    }
}
