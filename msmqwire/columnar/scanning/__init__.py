"""Between the compiled scan and the generic reader: what one passes to the other, and gets back."""
